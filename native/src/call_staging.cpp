// Runs that read from and write to ordinary memory: large tensors are copied by several threads, and each piece goes on its way as soon as it is staged.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "call.hpp"
#include "copy_threads.hpp"

namespace trtforge {

namespace {

// Below this a thread's waking costs more than its copying saves.
constexpr std::size_t kLarge = std::size_t{256} << 10;
constexpr std::size_t kInputPiece = std::size_t{1} << 20;
constexpr std::size_t kOutputPiece = std::size_t{2} << 20;

struct Piece {
  const Slotted* slot;
  char* view;
  std::size_t from, bytes;
};

std::vector<Piece> piecesOf(const std::vector<Slotted>& slots, const std::vector<HostView>& views, std::size_t size) {
  std::vector<Piece> pieces;
  for (const HostView& view : views) {
    const Slotted& slot = slots[static_cast<std::size_t>(view.slot)];
    if (slot.bytes < kLarge || !slot.copied()) continue;
    for (std::size_t from = 0; from < slot.bytes; from += size) pieces.push_back({&slot, static_cast<char*>(view.data), from, std::min(size, slot.bytes - from)});
  }
  return pieces;
}

bool isLarge(const std::vector<Slotted>& slots, const HostView& view) {
  const Slotted& slot = slots[static_cast<std::size_t>(view.slot)];
  return slot.bytes >= kLarge && slot.copied();
}

bool anyLarge(const std::vector<Slotted>& slots, const std::vector<HostView>& views) {
  return std::any_of(views.begin(), views.end(), [&](const HostView& view) { return isLarge(slots, view); });
}

bool staged(const std::vector<Slotted>& slots, const std::vector<HostView>& views, const Slotted& slot) {
  return std::any_of(views.begin(), views.end(), [&](const HostView& view) { return &slots[static_cast<std::size_t>(view.slot)] == &slot && isLarge(slots, view); });
}

char* pinned(const Slotted& slot) { return static_cast<char*>(slot.host->get()); }

}  // namespace

void Call::run(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  std::lock_guard<std::mutex> lock(context_->mutex);
  open();
  const cuda::Stream& stream = context_->stream();
  stream.device().makeCurrent();
  for (const HostView& view : inputs) {
    const Slotted& slot = slots_[static_cast<std::size_t>(view.slot)];
    if (!isLarge(slots_, view)) std::memcpy(pinned(slot), view.data, slot.bytes);
  }
  try {
    if (anyLarge(slots_, inputs) || anyLarge(slots_, outputs)) {
      stageIn(inputs);
      launchCompute();
      stageOut(outputs);
    } else {
      launch();
    }
    stream.synchronize();
  } catch (const Failure&) {
    stream.device().api().streamSynchronize(stream.get());
    throw;
  }
  for (const HostView& view : outputs) {
    const Slotted& slot = slots_[static_cast<std::size_t>(view.slot)];
    if (!isLarge(slots_, view)) std::memcpy(view.data, pinned(slot), slot.bytes);
  }
}

void Call::stageIn(const std::vector<HostView>& views) {
  const cuda::Stream& stream = context_->stream();
  const cuda::Device& device = stream.device();
  for (const Slotted& slot : slots_)
    if (slot.input && slot.copied() && !staged(slots_, views, slot)) stream.copyToDevice(slot.address(), slot.host->get(), slot.bytes);
  const std::vector<Piece> pieces = piecesOf(slots_, views, kInputPiece);
  std::atomic<int> failed{cuda::kSuccess};
  onCopyThreads(pieces.size(), [&](std::size_t index) {
    const Piece& piece = pieces[index];
    std::memcpy(pinned(*piece.slot) + piece.from, piece.view + piece.from, piece.bytes);
    device.makeCurrentQuietly();
    const int code = device.api().copyToDevice(piece.slot->address() + piece.from, pinned(*piece.slot) + piece.from, piece.bytes, stream.get());
    if (code != cuda::kSuccess) failed = code;
  });
  cuda::check(failed, "Copying to the GPU");
}

void Call::launchCompute() {
  const bool rebound = bind();
  if (fullGraphed_ && !rebound) {
    std::string refusal;
    if (!compute_) {
      compute_ = cuda::Graph::capture(
          context_->stream(),
          [this] {
            enqueue();
            return true;
          },
          refusal);
    }
    if (compute_) return compute_.launch(context_->stream());
  }
  enqueue();
}

void Call::stageOut(const std::vector<HostView>& views) {
  const cuda::Stream& stream = context_->stream();
  for (const Slotted& slot : slots_)
    if (!slot.input && slot.copied() && !staged(slots_, views, slot)) stream.copyToHost(slot.host->get(), slot.address(), slot.bytes);
  const std::vector<Piece> pieces = piecesOf(slots_, views, kOutputPiece);
  while (chunkDone_.size() < pieces.size()) chunkDone_.push_back(std::make_unique<cuda::Event>(stream.device(), false));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    stream.copyToHost(pinned(*piece.slot) + piece.from, piece.slot->address() + piece.from, piece.bytes);
    chunkDone_[i]->record(stream);
  }
  std::atomic<int> failed{cuda::kSuccess};
  onCopyThreads(pieces.size(), [&](std::size_t index) {
    const Piece& piece = pieces[index];
    stream.device().makeCurrentQuietly();
    const int code = stream.device().api().eventSynchronize(chunkDone_[index]->get());
    if (code != cuda::kSuccess) failed = code;
    else std::memcpy(piece.view + piece.from, pinned(*piece.slot) + piece.from, piece.bytes);
  });
  cuda::check(failed, "Copying from the GPU");
}

}  // namespace trtforge
