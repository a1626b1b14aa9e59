// `measure(engine, request)` of the addon.
#pragma once
#include <node_api.h>

namespace trtforge {

napi_value measureExport(napi_env env, napi_callback_info info);

}  // namespace trtforge
