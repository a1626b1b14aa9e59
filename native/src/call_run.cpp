// One run of a call: inputs on their way, the launch, the wait.
#include <cstring>

#include "call.hpp"

namespace trtforge {

void Call::run(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  std::lock_guard<std::mutex> lock(context_->mutex);
  end(begin(inputs, outputs), outputs);
}

std::optional<Call::Begun> Call::tryBegin(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  const std::unique_lock<std::mutex> lock(context_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  return begin(inputs, outputs);
}

void Call::finish(const Begun& begun, const std::vector<HostView>& outputs) {
  std::lock_guard<std::mutex> lock(context_->mutex);
  context_->stream().device().makeCurrent();
  end(begun, outputs);
}

Call::Begun Call::begin(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  open();
  Begun begun;
  begun.staged = bytesStaged(inputs) + bytesStaged(outputs);
  const cuda::Stream& stream = context_->stream();
  stream.device().makeCurrent();
  for (const HostView& view : inputs)
    if (!isLarge(view)) std::memcpy(slot(view).host->get(), view.data, slot(view).bytes);
  try {
    if (begun.staged > 0) stageIn(inputs);
  } catch (const Failure&) {
    stream.device().api().streamSynchronize(stream.get());
    throw;
  }
  return begun;
}

void Call::end(const Begun& begun, const std::vector<HostView>& outputs) {
  const cuda::Stream& stream = context_->stream();
  try {
    if (begun.staged > 0) launchRest(outputs);
    else launch();
    if (begun.staged > 0) stageOut();
    stream.synchronize();
  } catch (const Failure&) {
    stream.device().api().streamSynchronize(stream.get());
    throw;
  }
  for (const HostView& view : outputs)
    if (!isLarge(view)) std::memcpy(view.data, slot(view).host->get(), slot(view).bytes);
}

void Call::launch() {
  const bool rebound = bind();
  if (fullGraphed_ && !rebound) {
    if (!full_) captureFull();
    if (full_) return full_.launch(context_->stream());
  }
  copyIn();
  enqueue();
  copyOut();
}

void Call::launchRest(const std::vector<HostView>& outputs) {
  const bool rebound = bind();
  const bool whole = outputsAreSmall();
  if (fullGraphed_ && !rebound && !rest_) {
    std::string refusal;
    rest_ = cuda::Graph::capture(
        context_->stream(),
        [&] {
          enqueue();
          if (whole) copyOut();
          return true;
        },
        refusal);
  }
  const bool graphed = !rebound && rest_;
  if (graphed) rest_.launch(context_->stream());
  else enqueue();
  if (!graphed || !whole) enqueueOut(outputs);
}

}  // namespace trtforge
