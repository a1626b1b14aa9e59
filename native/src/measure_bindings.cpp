#include "measure_bindings.hpp"

#include "guarded.hpp"
#include "handles.hpp"
#include "job.hpp"
#include "measure.hpp"

namespace trtforge {

namespace {

using js::Reader;

MeasureRequest measureRequest(napi_env env, const Reader& from) {
  MeasureRequest request;
  request.profile = static_cast<std::int32_t>(from["profile"].integer());
  for (const Reader& shape : from["shapes"].elements()) {
    InputShape& given = request.shapes.emplace_back();
    given.name = shape["name"].text();
    given.shape = shape["shape"].integers();
    if (!shape["values"].isNull()) given.values = shape["values"].integers();
  }
  for (const Reader& input : from["inputs"].elements()) {
    const js::Bytes bytes = js::bytesOf(env, input["data"].value());
    const char* first = static_cast<const char*>(bytes.data);
    request.inputs.push_back({input["name"].text(), std::vector<char>(first, first + bytes.size)});
  }
  request.streams = static_cast<std::int32_t>(from["streams"].integer());
  request.threads = !from["threads"].isNull() && from["threads"].boolean();
  request.warmUpMs = from["warmUpMs"].number();
  request.durationMs = from["durationMs"].number();
  request.iterations = from["iterations"].integer();
  request.transfers = from["transfers"].boolean();
  request.graph = from["graph"].boolean();
  request.spinWait = from["spinWait"].boolean();
  request.idleMs = from["idleMs"].number();
  return request;
}

template <class Number, class Of>
napi_value column(napi_env env, napi_typedarray_type type, const std::vector<Sample>& samples, Of of) {
  void* memory = nullptr;
  napi_value buffer, array;
  js::check(env, napi_create_arraybuffer(env, samples.size() * sizeof(Number), &memory, &buffer));
  Number* numbers = static_cast<Number*>(memory);
  for (const Sample& sample : samples) *numbers++ = of(sample);
  js::check(env, napi_create_typedarray(env, type, samples.size(), buffer, 0, &array));
  return array;
}

napi_value milliseconds(napi_env env, const std::vector<Sample>& samples, double Sample::*field) {
  return column<double>(env, napi_float64_array, samples, [field](const Sample& sample) { return sample.*field; });
}

napi_value measurementValue(napi_env env, const Measurement& measured) {
  const auto& samples = measured.samples;
  const auto memory = js::Writer(env).set("peakUsed", measured.peakUsedBytes).set("total", measured.totalBytes).value();
  return js::Writer(env)
      .set("streams", column<std::int32_t>(env, napi_int32_array, samples, [](const Sample& sample) { return sample.stream; }))
      .set("inputStart", milliseconds(env, samples, &Sample::inputStart))
      .set("inputEnd", milliseconds(env, samples, &Sample::inputEnd))
      .set("computeStart", milliseconds(env, samples, &Sample::computeStart))
      .set("computeEnd", milliseconds(env, samples, &Sample::computeEnd))
      .set("outputStart", milliseconds(env, samples, &Sample::outputStart))
      .set("outputEnd", milliseconds(env, samples, &Sample::outputEnd))
      .set("enqueueMs", column<double>(env, napi_float64_array, samples, [](const Sample& sample) { return sample.enqueueEndMs - sample.enqueueStartMs; }))
      .set("wallMs", measured.wallMs)
      .set("warmUpInferences", measured.warmUpInferences)
      .set("graph", measured.graph)
      .setOrNull("graphRefusal", measured.graphRefusal)
      .set("gpuMemory", memory)
      .value();
}

}  // namespace

napi_value measureExport(napi_env env, napi_callback_info info) {
  const auto [handle, given] = argumentsOf<2>(env, info);
  // Both stay until the measurement is over, also when JavaScript closes the engine or changes the inputs meanwhile.
  const auto engine = engineOf(env, handle);
  const auto request = std::make_shared<const MeasureRequest>(measureRequest(env, Reader(env, given)));
  return startTask(env, "trtforge:measure", [engine, request](Listener& listener) -> Answer {
    const auto measured = std::make_shared<const Measurement>(measure(engine, *request, listener));
    return [measured](napi_env env) { return measurementValue(env, *measured); };
  });
}

}  // namespace trtforge
