#include "gpu_state_bindings.hpp"

#include "gpu_state.hpp"
#include "javascript.hpp"

namespace trtforge {

namespace {

// null for what is not known.
class Answer {
 public:
  explicit Answer(napi_env env) : env_(env), writer_(env) {}

  template <class Value>
  Answer& set(const char* key, const std::optional<Value>& value) {
    if (value.has_value())
      writer_.set(key, *value);
    else
      writer_.set(key, js::nullValue(env_));
    return *this;
  }
  napi_value value() const { return writer_.value(); }

 private:
  napi_env env_;
  js::Writer writer_;
};

napi_value processValue(napi_env env, const GpuProcess& process) {
  return Answer(env).set("pid", std::optional(process.pid)).set("usedBytes", process.usedBytes).value();
}

napi_value stateValue(napi_env env, const GpuState& state) {
  std::optional<napi_value> processes;
  if (state.processes.has_value())
    processes = js::array(env, *state.processes, [env](const GpuProcess& process) { return processValue(env, process); });
  return Answer(env)
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

}  // namespace

napi_value gpuStateExport(napi_env env, napi_callback_info info) {
  std::size_t count = 1;
  napi_value uuid;
  js::check(env, napi_get_cb_info(env, info, &count, &uuid, nullptr, nullptr));
  const auto state = gpuState(js::Reader(env, uuid).text());
  return state.has_value() ? stateValue(env, *state) : js::nullValue(env);
}

}  // namespace trtforge
