// Engines, contexts and calls as JavaScript reaches them: functions over handles. Types of both sides: src/tensorrt/addon/native-engine.ts.
#pragma once
#include <node_api.h>

#include <functional>

namespace trtforge {

// Adds a function to the addon's exports; a Failure it throws becomes a JavaScript exception.
using AddExport = std::function<void(const char* name, napi_callback function)>;

void addEngineExports(const AddExport& add);
void addCallExports(const AddExport& add);

}  // namespace trtforge
