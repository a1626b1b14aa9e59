#include "engine_bindings.hpp"
#include "handles.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "values.hpp"

namespace trtforge {

namespace {

using js::Reader;

MeasureRequest measureRequest(const Reader& from) {
  MeasureRequest request;
  request.profile = static_cast<std::int32_t>(from["profile"].integer());
  for (const Reader& shape : from["shapes"].elements()) {
    InputShape& given = request.shapes.emplace_back();
    given.name = shape["name"].text();
    given.shape = shape["shape"].integers();
    if (!shape["values"].isNull()) given.values = shape["values"].integers();
  }
  for (const Reader& input : from["inputs"].elements()) {
    const js::Bytes bytes = js::bytesOf(input["data"].value());
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
Napi::Value column(Napi::Env env, const std::vector<Sample>& samples, Of of) {
  auto numbers = Napi::TypedArrayOf<Number>::New(env, samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) numbers.Data()[i] = of(samples[i]);
  return numbers;
}

Napi::Value milliseconds(Napi::Env env, const std::vector<Sample>& samples, double Sample::*field) {
  return column<double>(env, samples, [field](const Sample& sample) { return sample.*field; });
}

Napi::Value measurementValue(Napi::Env env, const Measurement& measured) {
  const auto& samples = measured.samples;
  const auto memory = js::Writer(env).set("peakUsed", measured.peakUsedBytes).set("total", measured.totalBytes).value();
  return js::Writer(env)
      .set("streams", column<std::int32_t>(env, samples, [](const Sample& sample) { return sample.stream; }))
      .set("inputStart", milliseconds(env, samples, &Sample::inputStart))
      .set("inputEnd", milliseconds(env, samples, &Sample::inputEnd))
      .set("computeStart", milliseconds(env, samples, &Sample::computeStart))
      .set("computeEnd", milliseconds(env, samples, &Sample::computeEnd))
      .set("outputStart", milliseconds(env, samples, &Sample::outputStart))
      .set("outputEnd", milliseconds(env, samples, &Sample::outputEnd))
      .set("enqueueMs",
           column<double>(env, samples,
                          [](const Sample& sample) { return sample.enqueueEndMs - sample.enqueueStartMs; }))
      .set("wallMs", measured.wallMs)
      .set("warmUpInferences", measured.warmUpInferences)
      .set("graph", measured.graph)
      .setOrNull("graphRefusal", measured.graphRefusal)
      .set("gpuMemory", memory)
      .value();
}

Napi::Value measureExport(const Napi::CallbackInfo& info) {
  // Both stay until the measurement is over, also when JavaScript closes the engine or changes the inputs meanwhile.
  const auto engine = engineOf(info[0]);
  const auto request = std::make_shared<const MeasureRequest>(measureRequest(Reader(info[1])));
  return startTask(info.Env(), "trtforge:measure", [engine, request](Listener& listener) -> Answer {
    const auto measured = std::make_shared<const Measurement>(measure(engine, *request, listener));
    return [measured](Napi::Env env) { return measurementValue(env, *measured); };
  });
}

}  // namespace

void addMeasureExport(Napi::Object& exports) { js::add<measureExport>(exports, "measure"); }

}  // namespace trtforge
