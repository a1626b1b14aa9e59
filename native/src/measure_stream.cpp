#include "measure_stream.hpp"

#include <algorithm>
#include <cstring>

#include "nvtx.hpp"

namespace trtforge {

namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

std::vector<std::int64_t> shapeFor(const EngineTensor& tensor, const MeasureRequest& request) {
  for (const InputShape& given : request.shapes)
    if (given.name == tensor.name) return given.shape;
  return tensor.shape;
}

const std::vector<char>& bytesFor(const EngineTensor& tensor, const MeasureRequest& request) {
  for (const MeasureInput& given : request.inputs)
    if (given.name == tensor.name) return given.bytes;
  throw Failure("TF_SESSION_INPUT", "The measurement has no bytes for the input " + quoted(tensor.name) + ".");
}

void requireLinear(const EngineTensor& tensor) {
  constexpr std::int32_t kLinear = 0;
  if (tensor.format != kLinear)
    throw Failure("TF_SESSION_INPUT", "The tensor " + quoted(tensor.name) +
                                          " is not in linear format (its TensorFormat is " +
                                          std::to_string(tensor.format) + "), and only linear tensors are measured.");
}

// Room for the host outputs that the library writes (values of shape tensors), with its own minimum.
constexpr std::size_t kHostOutputBytes = 64;

}  // namespace

EngineStream::EngineStream(const std::shared_ptr<Engine>& engine, const MeasureRequest& request)
    : transfers_(request.transfers),
      device_(engine->device()),
      input_(device_),
      compute_(device_),
      output_(device_),
      activations_(device_, static_cast<std::size_t>(engine->activationBytes(request.profile)),
                   "activation memory of a context"),
      execution_(engine, request.profile, activations_, compute_) {
  const nvtx::Range range(("prepare " + engine->label()).c_str());
  execution_.setShapes(request.shapes);
  for (const EngineTensor& tensor : engine->facts().tensors)
    if (tensor.input && !tensor.host) bindInput(tensor, request);
  for (const OutputShape& output : execution_.outputs()) bindOutput(engine->tensor(output.name), output);
  copyIn();
  input_.synchronize();
  execution_.enqueue(compute_);
  compute_.synchronize();
  if (transfers_) pinOutputs();
  if (request.graph)
    graph_ = cuda::Graph::capture(
        compute_, [this] { return execution_.enqueue(compute_), true; }, refusal_);
  compute_.synchronize();
}

EngineStream::~EngineStream() {
  // After a failure work may still be under way in the buffers that go now; what it reports matters no more.
  if (cuda::ending()) return;
  for (const cuda::Stream* stream : {&input_, &compute_, &output_}) device_.api().streamSynchronize(stream->get());
}

void EngineStream::bindInput(const EngineTensor& tensor, const MeasureRequest& request) {
  requireLinear(tensor);
  const std::vector<std::int64_t> shape = shapeFor(tensor, request);
  const std::vector<char>& bytes = bytesFor(tensor, request);
  const std::int64_t needed = bytesOf(tensor.dtype, volumeOf(shape));
  if (static_cast<std::int64_t>(bytes.size()) != needed)
    throw Failure("TF_SESSION_INPUT", "The input " + quoted(tensor.name) + " of shape " + shown(shape) + " takes " +
                                          std::to_string(needed) + " bytes, and " + std::to_string(bytes.size()) +
                                          " were passed.");
  cuda::DeviceBlock device(device_, bytes.size(), "input " + quoted(tensor.name));
  execution_.setAddress(tensor.name, device.get());
  std::optional<cuda::HostBlock> pinned;
  if (transfers_) {
    pinned.emplace(device_, bytes.size(), "input " + quoted(tensor.name));
    if (!bytes.empty()) std::memcpy(pinned->get(), bytes.data(), bytes.size());
  } else {
    input_.copyToDevice(device.address(), bytes.data(), bytes.size());
  }
  bindings_.push_back({&tensor, bytes.size(), std::move(device), nullptr, std::move(pinned)});
}

void EngineStream::bindOutput(const EngineTensor& tensor, const OutputShape& output) {
  requireLinear(tensor);
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(output.bytes, 0));
  if (tensor.host) {
    hostOutputs_.emplace_back(std::max(bytes, kHostOutputBytes));
    execution_.setAddress(tensor.name, hostOutputs_.back().data());
    return;
  }
  if (!output.shape.has_value()) {
    auto allocator = std::make_unique<OutputAllocator>(device_, tensor.name);
    execution_.setAllocator(tensor.name, allocator.get());
    bindings_.push_back({&tensor, 0, cuda::DeviceBlock(), std::move(allocator), std::nullopt});
    return;
  }
  cuda::DeviceBlock device(device_, bytes, "output " + quoted(tensor.name));
  execution_.setAddress(tensor.name, device.get());
  bindings_.push_back({&tensor, bytes, std::move(device), nullptr, std::nullopt});
}

void EngineStream::pinOutputs() {
  for (Binding& binding : bindings_) {
    if (binding.tensor->input) continue;
    if (binding.allocator != nullptr)
      binding.bytes = static_cast<std::size_t>(
          std::max<std::int64_t>(bytesOf(binding.tensor->dtype, volumeOf(binding.allocator->shape())), 0));
    binding.pinned.emplace(device_, binding.bytes, "output " + quoted(binding.tensor->name));
  }
}

void EngineStream::copyIn() const {
  if (!transfers_) return;
  for (const Binding& binding : bindings_)
    if (binding.tensor->input) input_.copyToDevice(binding.address(), binding.pinned->get(), binding.bytes);
}

void EngineStream::copyOut() const {
  for (const Binding& binding : bindings_)
    if (!binding.tensor->input) output_.copyToHost(binding.pinned->get(), binding.address(), binding.bytes);
}

void EngineStream::startAfter(const TimedEvent& start) const {
  start.holdBack(input_);
  start.holdBack(compute_);
}

void EngineStream::enqueue(const EventRing& events, Sample& sample) {
  const nvtx::Range range(execution_.engine().label().c_str());
  if (transfers_) {
    events.next(Moment::kInputStart).record(input_);
    copyIn();
    events.next(Moment::kInputEnd).record(input_);
    events.next(Moment::kInputEnd).holdBack(compute_);
  }
  events.next(Moment::kComputeStart).record(compute_);
  sample.enqueueStartMs = hostMs();
  if (graph_)
    graph_.launch(compute_);
  else
    execution_.enqueue(compute_);
  sample.enqueueEndMs = hostMs();
  events.next(Moment::kComputeEnd).record(compute_);
  if (!transfers_) return;
  events.next(Moment::kComputeEnd).holdBack(output_);
  events.next(Moment::kOutputStart).record(output_);
  copyOut();
  events.next(Moment::kOutputEnd).record(output_);
}

void EngineStream::wait(const EventRing& events) {
  events.oldest(transfers_ ? Moment::kOutputEnd : Moment::kComputeEnd).synchronize();
}

}  // namespace trtforge
