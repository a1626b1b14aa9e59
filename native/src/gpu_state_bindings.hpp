// `gpuState(uuid)` of the addon.
#pragma once
#include <node_api.h>

namespace trtforge {

napi_value gpuStateExport(napi_env env, napi_callback_info info);

}  // namespace trtforge
