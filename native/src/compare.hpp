// Comparison of numbers.
#pragma once
#include <napi.h>

namespace trtforge {

// Adds `measurePairs`: `MeasurePairs` of src/formats/tensor/compare/pair-sums.ts.
void addCompareExport(Napi::Object& exports);

}  // namespace trtforge
