#include "call.hpp"

#include <algorithm>
#include <cstring>

#include "nvtx.hpp"

namespace trtforge {

namespace {

std::string sizes(std::size_t has, std::size_t needs) {
  return std::to_string(has) + " bytes, and " + std::to_string(needs) + " are needed";
}

}  // namespace

Call::Call(std::shared_ptr<Context> context, const CallRequest& request)
    : context_(std::move(context)), request_(request), profiled_(context_->layerTimes() != nullptr) {}

std::shared_ptr<Call> Call::prepare(const std::shared_ptr<Context>& context, const CallRequest& request) {
  // Before the lock: a call that could not be made takes the mutex once more while it goes.
  const std::shared_ptr<Call> call(new Call(context, request));
  std::lock_guard<std::mutex> lock(context->mutex);
  call->label_ = context->engine()->label();
  const nvtx::Range range(("prepare " + call->label_).c_str());
  context->engine()->device().makeCurrent();
  try {
    call->execution_ = context->takeExecution();
    call->execution_->boundTo = nullptr;
    call->execution_->setShapes(request.shapes);
    call->outputs_ = call->execution_->outputs();
    call->addSlots();
    call->rehearse();
    call->prepareGraph();
    call->placeSmall();
  } catch (const Failure&) {
    call->release();
    throw;
  }
  context->add(call);
  return call;
}

Call::~Call() { close(); }

const BindingRequest& Call::bindingOf(const std::string& name) const {
  for (const BindingRequest& binding : request_.bindings)
    if (binding.name == name) return binding;
  throw Failure("TF_SESSION_INPUT", "No binding was passed for " + name + ".");
}

void Call::addSlots() {
  const Engine& engine = *context_->engine();
  for (const BindingRequest& binding : request_.bindings) (void)engine.tensor(binding.name);
  for (const EngineTensor& tensor : engine.facts().tensors) {
    const auto given = std::find_if(request_.shapes.begin(), request_.shapes.end(),
                                    [&](const InputShape& shape) { return shape.name == tensor.name; });
    if (tensor.input && given == request_.shapes.end() && (tensor.host || volumeOf(tensor.shape) < 0))
      throw Failure("TF_SESSION_INPUT",
                    "No shape was passed for the input " + tensor.name + ", whose dimensions are open.");
    if (tensor.input && tensor.host) continue;
    if (tensor.format != 0)
      throw Failure("TF_SESSION_BINDING",
                    tensor.name + " is not laid out linearly (format " + std::to_string(tensor.format) + ").");
    if (tensor.input) {
      const auto& shape = given == request_.shapes.end() ? tensor.shape : given->shape;
      addSlot(tensor, &shape, static_cast<std::size_t>(bytesOf(tensor.dtype, volumeOf(shape))));
      continue;
    }
    const auto output = std::find_if(outputs_.begin(), outputs_.end(),
                                     [&](const OutputShape& shape) { return shape.name == tensor.name; });
    addSlot(tensor, output->shape.has_value() ? &*output->shape : nullptr, static_cast<std::size_t>(output->bytes));
  }
}

void Call::addSlot(const EngineTensor& tensor, const std::vector<std::int64_t>* shape, std::size_t bytes) {
  const Engine& engine = *context_->engine();
  Slotted slot;
  slot.name = tensor.name;
  slot.input = tensor.input;
  slot.hostTensor = tensor.host;
  slot.bytes = bytes;
  if (tensor.host) {
    slot.host = engine.pool().host(bytes, "shape tensor " + tensor.name);
    slots_.push_back(std::move(slot));
    return;
  }
  const BindingRequest& binding = bindingOf(tensor.name);
  slot.callerOwns = binding.memory != nullptr;
  slot.device = binding.memory;
  slot.offset = binding.offset;
  if (slot.callerOwns && &slot.device->device() != &engine.device())
    throw Failure("TF_SESSION_INPUT", "The device memory passed for " + tensor.name + " is on GPU " +
                                          std::to_string(slot.device->device().ordinal()) + ", and the engine on GPU " +
                                          std::to_string(engine.device().ordinal()) + ".");
  if (slot.callerOwns && slot.offset % kAddressAlignment != 0)
    throw Failure("TF_SESSION_INPUT", "The device memory passed for " + tensor.name + " begins at byte " +
                                          std::to_string(slot.offset) + ", which is not a multiple of 256.");
  if (slot.callerOwns &&
      (slot.offset > slot.device->bytes() || (shape != nullptr && slot.device->bytes() - slot.offset < bytes)))
    throw Failure("TF_SESSION_INPUT",
                  "The device memory passed for " + tensor.name + " has from byte " + std::to_string(slot.offset) +
                      " on " + sizes(slot.device->bytes() - std::min(slot.offset, slot.device->bytes()), bytes) + ".");
  if (shape == nullptr && slot.callerOwns)
    slot.allocator = std::make_unique<OutputAllocator>(engine.device(), tensor.name,
                                                       static_cast<char*>(slot.device->get()) + slot.offset,
                                                       slot.device->bytes() - slot.offset);
  else if (shape == nullptr)
    slot.allocator = std::make_unique<OutputAllocator>(engine.device(), tensor.name);
  else if (!slot.callerOwns) {
    slot.device = engine.pool().device(bytes, "buffer of " + tensor.name);
    slot.host = engine.pool().host(bytes, "buffer of " + tensor.name);
    // What another call left there, and numbers that are no index, are no input for the rehearsal.
    std::memset(slot.host->get(), 0, slot.bytes);
  }
  slots_.push_back(std::move(slot));
}

void Call::keepingOutputs(const std::function<void()>& work) {
  const Engine& engine = *context_->engine();
  const cuda::Stream& stream = context_->stream();
  // Outputs in the caller's memory may be the state another call starts from.
  std::vector<std::pair<const Slotted*, std::shared_ptr<cuda::DeviceBlock>>> saved;
  for (const Slotted& slot : slots_) {
    if (slot.input || !slot.callerOwns) continue;
    const std::size_t bytes = slot.allocator == nullptr ? slot.bytes : slot.device->bytes() - slot.offset;
    saved.emplace_back(&slot, engine.pool().device(bytes, "rehearsal of " + slot.name));
    stream.copyOnDevice(saved.back().second->address(), slot.address(), bytes);
  }
  try {
    work();
    stream.synchronize();
  } catch (const Failure&) {
    engine.device().api().streamSynchronize(stream.get());
    throw;
  }
  for (const auto& [slot, block] : saved)
    stream.copyOnDevice(slot->address(), block->address(),
                        slot->allocator == nullptr ? slot->bytes : slot->device->bytes() - slot->offset);
  stream.synchronize();
  for (auto& [slot, block] : saved) engine.pool().giveBack(std::move(block));
}

void Call::rehearse() {
  if (profiled_) execution_->setProfiler(nullptr);
  keepingOutputs([this] {
    (void)bind();
    copyIn();
    enqueue();
    copyOut();
  });
  if (profiled_) execution_->setProfiler(context_->layerTimes()->profiler());
}

void Call::prepareGraph() {
  if (!request_.graph) return;
  graphRefusal_ = whyNoGraph();
  if (graphRefusal_.empty()) captureFull();
}

std::string Call::whyNoGraph() const {
  for (const Slotted& slot : slots_)
    if (slot.allocator != nullptr)
      return "The shape of the output " + slot.name + " depends on the data, so no graph can fix it.";
  if (context_->engine()->streamsWeights())
    return "The engine streams its weights from host memory, which no graph can capture.";
  if (profiled_) return "The context takes the times of layers, which a graph does not report.";
  return "";
}

void Call::captureFull() {
  full_ = cuda::Graph::capture(
      context_->stream(),
      [this] {
        copyIn();
        enqueue();
        copyOut();
        return true;
      },
      graphRefusal_);
  fullGraphed_ = static_cast<bool>(full_);
  // A capture that broke leaves work undone in the library: one plain run puts it right.
  if (!fullGraphed_) rehearse();
}

void Call::open() {
  if (execution_ == nullptr) throw Failure("TF_SESSION_CLOSED", "The call is closed.");
  if (context_->engine()->halfRefitted)
    throw Failure("TF_REFIT_FAILED", "The engine has some weights of another model, since its refit failed half-way.");
}

bool Call::bind() {
  if (execution_->boundTo == this) return false;
  full_ = cuda::Graph();
  rest_ = cuda::Graph();
  execution_->setShapes(request_.shapes);
  for (Slotted& slot : slots_) {
    if (slot.hostTensor) {
      execution_->setAddress(slot.name, slot.host->get());
    } else if (slot.mapped != 0) {
      execution_->setAddress(slot.name, reinterpret_cast<void*>(slot.mapped));
    } else if (slot.allocator != nullptr) {
      execution_->setAllocator(slot.name, slot.allocator.get());
    } else {
      execution_->setAddress(slot.name, reinterpret_cast<void*>(slot.address()));
    }
  }
  execution_->boundTo = this;
  return true;
}

void Call::enqueue() {
  for (Slotted& slot : slots_)
    if (slot.allocator != nullptr) slot.allocator->beginRun();
  if (profiled_) context_->layerTimes()->beginRun();
  try {
    execution_->enqueue(context_->stream());
  } catch (const Failure& failure) {
    throw explained(failure);
  }
}

Failure Call::explained(const Failure& failure) const {
  for (const Slotted& slot : slots_)
    if (slot.allocator != nullptr && slot.allocator->refusedBytes() > 0)
      return context_->engine()->device().outOfMemory(
          "output " + slot.name + (slot.callerOwns ? " in the memory passed for it" : ""),
          slot.allocator->refusedBytes());
  return failure;
}

void Call::copyIn() {
  for (const Slotted& slot : slots_)
    if (slot.input && slot.copied()) context_->stream().copyToDevice(slot.address(), slot.host->get(), slot.bytes);
}

void Call::copyOut() {
  for (const Slotted& slot : slots_)
    if (!slot.input && slot.copied()) context_->stream().copyToHost(slot.host->get(), slot.address(), slot.bytes);
}

std::vector<char> Call::readOutput(const std::string& name) {
  std::lock_guard<std::mutex> lock(context_->mutex);
  open();
  const Engine& engine = *context_->engine();
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slotted& one) { return one.name == name; });
  if (slot == slots_.end() || slot->allocator == nullptr)
    throw Failure("TF_SESSION_INPUT", name + " is not an output whose shape depends on the data.");
  if (!slot->allocator->known())
    throw Failure("TF_SESSION_INPUT", "The output " + name + " has no shape yet: nothing has run.");
  std::vector<char> bytes(static_cast<std::size_t>(
      bytesOf(engine.tensor(name).dtype, std::max<std::int64_t>(0, volumeOf(slot->allocator->shape())))));
  engine.device().makeCurrent();
  context_->stream().copyToHost(bytes.data(), reinterpret_cast<cuda::Address>(slot->allocator->memory()), bytes.size());
  context_->stream().synchronize();
  return bytes;
}

void Call::rebind() {
  if (execution_ != nullptr) execution_->boundTo = nullptr;
}

void Call::release() {
  if (execution_ == nullptr) return;
  const std::shared_ptr<Engine> engine = context_->engine();
  // On a shared or kept execution no allocator may outlive its call.
  if (execution_->boundTo == this)
    for (Slotted& slot : slots_)
      if (slot.allocator != nullptr) execution_->clearAllocator(slot.name);
  full_ = cuda::Graph();
  rest_ = cuda::Graph();
  outDone_.clear();
  outPieces_.clear();
  for (Slotted& slot : slots_) {
    if (!slot.callerOwns) engine->pool().giveBack(std::move(slot.device));
    slot.device.reset();
    engine->pool().giveBack(std::move(slot.host));
    slot.host.reset();
    slot.allocator.reset();
  }
  context_->giveBack(std::move(execution_));
  execution_.reset();
}

void Call::close() {
  if (context_ == nullptr) return;
  std::lock_guard<std::mutex> lock(context_->mutex);
  if (execution_ == nullptr) return;
  context_->engine()->device().makeCurrentQuietly();
  release();
}

}  // namespace trtforge
