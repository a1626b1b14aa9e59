// What rounding a weight to codes of few bits changes.
#pragma once
#include <napi.h>

namespace trtforge {

// Adds `measureRounding`: `MeasureRounding` of src/formats/precision/quantize/rounding-errors.ts.
void addRoundingExport(Napi::Object& exports);

}  // namespace trtforge
