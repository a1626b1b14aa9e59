#include "context.hpp"

#include <algorithm>

#include "call.hpp"

namespace trtforge {

Context::Context(std::shared_ptr<Engine> engine, int profile) : engine_(std::move(engine)), profile_(profile) {}

namespace {

void checkShared(const cuda::DeviceBlock& activations, const cuda::Device& device, std::size_t needed) {
  if (&activations.device() != &device)
    throw Failure("TF_SESSION_INPUT", "The memory passed for activations is on another GPU than the engine.");
  if (activations.bytes() < needed)
    throw Failure("TF_SESSION_INPUT", "The memory passed for activations has " + std::to_string(activations.bytes()) +
                                          " bytes; the engine needs " + std::to_string(needed) + ".");
}

}  // namespace

std::shared_ptr<Context> Context::create(std::shared_ptr<Engine> engine, int profile, bool profiling,
                                         std::shared_ptr<cuda::DeviceBlock> activations) {
  const EngineFacts& facts = engine->facts();
  if (profile < 0 || profile >= facts.profiles)
    throw Failure("TF_SESSION_INPUT", "The engine has no profile " + std::to_string(profile) + ": it has " +
                                          std::to_string(facts.profiles) + ", counted from 0.");
  const cuda::Device& device = engine->device();
  device.makeCurrent();
  const std::shared_ptr<Context> context(new Context(std::move(engine), profile));
  context->stream_ = std::make_unique<cuda::Stream>(device);
  const auto needed = static_cast<std::size_t>(context->engine_->activationBytes(profile));
  if (activations != nullptr)
    checkShared(*activations, device, needed);
  else
    activations = std::make_shared<cuda::DeviceBlock>(device, needed, "activations of a context");
  context->activations_ = std::move(activations);
  if (profiling) context->layerTimes_ = std::make_unique<LayerTimes>(context->engine_->library());
  context->first_ = context->newExecution();
  context->worker_ = std::make_unique<Worker>();
  return context;
}

Context::~Context() { close(); }

const std::shared_ptr<Engine>& Context::engine() const {
  if (engine_ == nullptr) throw Failure("TF_SESSION_CLOSED", "The context is closed.");
  return engine_;
}

std::shared_ptr<Execution> Context::newExecution() const {
  auto execution = std::make_shared<Execution>(engine_, profile_, *activations_, *stream_);
  if (layerTimes_ != nullptr) execution->setProfiler(layerTimes_->profiler());
  return execution;
}

std::vector<OutputShape> Context::outputsFor(const std::vector<InputShape>& shapes) {
  // On 8.6 a run may be using the execution.
  std::unique_lock<std::mutex> run(mutex, std::defer_lock);
  std::lock_guard<std::mutex> lock(firstMutex_);
  engine()->device().makeCurrent();
  if (shares()) {
    run.lock();
    first_->boundTo = nullptr;
  }
  first_->setShapes(shapes);
  return first_->outputs();
}

std::shared_ptr<Execution> Context::takeExecution() {
  if (engine()->generation8()) return first_;
  if (unused_.empty()) return newExecution();
  auto execution = std::move(unused_.back());
  unused_.pop_back();
  return execution;
}

void Context::giveBack(std::shared_ptr<Execution> execution) {
  execution->boundTo = nullptr;
  if (engine_ != nullptr && execution != first_) unused_.push_back(std::move(execution));
}

void Context::add(const std::shared_ptr<Call>& call) {
  calls_.erase(
      std::remove_if(calls_.begin(), calls_.end(), [](const std::weak_ptr<Call>& known) { return known.expired(); }),
      calls_.end());
  calls_.push_back(call);
}

void Context::rebind() {
  for (const auto& known : calls_)
    if (const auto call = known.lock()) call->rebind();
}

void Context::close() {
  if (cuda::ending()) {
    // The thread may be inside a driver that is going away: it is left behind.
    (void)worker_.release();
    return;
  }
  worker_.reset();
  // Kept beyond the lock: a call whose last holder this is takes the mutex when it goes.
  std::vector<std::shared_ptr<Call>> calls;
  std::lock_guard<std::mutex> first(firstMutex_);
  std::lock_guard<std::mutex> lock(mutex);
  if (engine_ == nullptr) return;
  engine_->device().makeCurrentQuietly();
  for (const auto& known : calls_)
    if (auto call = known.lock()) {
      call->release();
      calls.push_back(std::move(call));
    }
  calls_.clear();
  unused_.clear();
  first_.reset();
  activations_.reset();
  stream_.reset();
  engine_.reset();
}

}  // namespace trtforge
