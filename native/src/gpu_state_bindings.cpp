#include "engine_bindings.hpp"
#include "gpu_state.hpp"
#include "values.hpp"

namespace trtforge {

namespace {

// null for what is not known.
class Fields {
 public:
  explicit Fields(Napi::Env env) : env_(env), writer_(env) {}

  template <class Value>
  Fields& set(const char* key, const std::optional<Value>& value) {
    if (value.has_value())
      writer_.set(key, *value);
    else
      writer_.set(key, env_.Null());
    return *this;
  }
  Napi::Object value() const { return writer_.value(); }

 private:
  Napi::Env env_;
  js::Writer writer_;
};

Napi::Value processValue(Napi::Env env, const GpuProcess& process) {
  return Fields(env).set("pid", std::optional(process.pid)).set("usedBytes", process.usedBytes).value();
}

Napi::Value stateValue(Napi::Env env, const GpuState& state) {
  std::optional<Napi::Array> processes;
  if (state.processes.has_value())
    processes =
        js::array(env, *state.processes, [env](const GpuProcess& process) { return processValue(env, process); });
  return Fields(env)
      .set("smClockMHz", state.smClockMHz)
      .set("memoryClockMHz", state.memoryClockMHz)
      .set("maxSmClockMHz", state.maxSmClockMHz)
      .set("maxMemoryClockMHz", state.maxMemoryClockMHz)
      .set("temperatureC", state.temperatureC)
      .set("slowdownTemperatureC", state.slowdownTemperatureC)
      .set("powerW", state.powerW)
      .set("powerLimitW", state.powerLimitW)
      .set("throttleReasons", state.throttleReasons)
      .set("utilizationPercent", state.utilizationPercent)
      .set("memoryUsedBytes", state.memoryUsedBytes)
      .set("memoryTotalBytes", state.memoryTotalBytes)
      .set("persistenceMode", state.persistenceMode)
      .set("migMode", state.migMode)
      .set("eccErrorsUncorrected", state.eccErrorsUncorrected)
      .set("processes", processes)
      .value();
}

Napi::Value gpuStateExport(const Napi::CallbackInfo& info) {
  const auto state = gpuState(js::Reader(info[0]).text());
  return state.has_value() ? stateValue(info.Env(), *state) : info.Env().Null();
}

}  // namespace

void addGpuStateExport(Napi::Object& exports) { js::add<gpuStateExport>(exports, "gpuState"); }

}  // namespace trtforge
