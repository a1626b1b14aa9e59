// Comparison of numbers.
#pragma once
#include <napi.h>

namespace trtforge {

// Adds `measureChunk`: `MeasureChunk` of src/formats/tensor/compare/pair-sums.ts.
void addCompareExport(Napi::Object& exports);

}  // namespace trtforge
