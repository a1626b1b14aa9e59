// Comparison of numbers.
#pragma once
#include <node_api.h>

namespace trtforge {

// `MeasurePairs` of src/formats/tensor/compare/pair-sums.ts.
napi_value measurePairsExport(napi_env env, napi_callback_info info);

}  // namespace trtforge
