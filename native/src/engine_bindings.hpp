// Engines, contexts, calls, measurements and the GPU's state as JavaScript reaches them: functions over handles. Types
// of both sides: src/addon.
#pragma once
#include <napi.h>

namespace trtforge {

void addEngineExports(Napi::Object& exports);
void addCallExports(Napi::Object& exports);
void addMeasureExport(Napi::Object& exports);
void addGpuStateExport(Napi::Object& exports);
void addOrtExports(Napi::Object& exports);

}  // namespace trtforge
