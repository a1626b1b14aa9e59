// Large tensors in ordinary memory: several threads copy them to and from pinned memory in pieces, and each piece is on
// its way to the GPU, or from it, while others are copied.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "call.hpp"
#include "copy.hpp"
#include "copy_threads.hpp"
#include "pause.hpp"

namespace trtforge {

namespace {

// Below this one memcpy is over before a thread could help.
constexpr std::size_t kLargeInput = std::size_t{256} << 10;
constexpr std::size_t kLargeOutput = std::size_t{1} << 20;
// A piece is copied in 5 to 25 microseconds.
constexpr std::size_t kLeastPiece = std::size_t{64} << 10;
constexpr std::size_t kMostPiece = std::size_t{256} << 10;
constexpr std::size_t kPieces = 16;
// Transfers grow: the first begins early, later ones waste less of the link between two of them.
constexpr std::size_t kFirstTransfer = std::size_t{256} << 10;
constexpr std::size_t kLongestTransfer = std::size_t{2} << 20;
constexpr std::size_t kOutputPiece = std::size_t{1} << 20;
constexpr std::size_t kBytesPerHelper = std::size_t{256} << 10;
// What is smaller stays in the caches, from where the GPU reads it too.
constexpr std::size_t kPastCaches = std::size_t{4} << 20;

// Sends what is staged, in order, one thread alone: threads that enqueue at once wait for each other inside the driver.
class Transfers {
 public:
  Transfers(const cuda::Stream& stream, std::size_t total) : stream_(stream), left_(total) {}

  bool over() const { return left_ == 0; }
  // The next bytes of the tensor are staged.
  void staged(const Slotted& slot, std::size_t bytes) {
    if (slot_ != &slot) send(), slot_ = &slot, from_ = ready_ = 0;
    ready_ += bytes;
    left_ -= bytes;
    if (ready_ - from_ >= least_ || left_ == 0) send();
  }

 private:
  void send() {
    if (slot_ == nullptr || ready_ == from_) return;
    stream_.copyToDevice(slot_->address() + from_, static_cast<char*>(slot_->host->get()) + from_, ready_ - from_);
    from_ = ready_;
    least_ = std::min(2 * least_, kLongestTransfer);
  }

  const cuda::Stream& stream_;
  std::size_t left_;
  const Slotted* slot_ = nullptr;
  std::size_t from_ = 0, ready_ = 0, least_ = kFirstTransfer;
};

}  // namespace

bool Call::isLarge(const HostView& view) const {
  const Slotted& one = slot(view);
  return one.copied() && one.bytes >= (one.input ? kLargeInput : kLargeOutput);
}

bool Call::isStaged(const Slotted& one, const std::vector<HostView>& views) const {
  return std::any_of(views.begin(), views.end(),
                     [&](const HostView& view) { return &slot(view) == &one && isLarge(view); });
}

bool Call::outputsAreSmall() const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [](const Slotted& one) { return !one.input && one.copied() && one.bytes >= kLargeOutput; });
}

std::size_t Call::bytesStaged(const std::vector<HostView>& views) const {
  std::size_t bytes = 0;
  for (const HostView& view : views)
    if (isLarge(view)) bytes += slot(view).bytes;
  return bytes;
}

std::size_t Call::helpersFor(std::size_t bytes) { return bytes / kBytesPerHelper; }

std::vector<Call::Piece> Call::piecesOf(const std::vector<HostView>& views, std::size_t size) const {
  std::vector<Piece> pieces;
  for (const HostView& view : views) {
    if (!isLarge(view)) continue;
    const Slotted& one = slot(view);
    for (std::size_t from = 0; from < one.bytes; from += size)
      pieces.push_back({&one, static_cast<char*>(view.data) + from, from, std::min(size, one.bytes - from)});
  }
  return pieces;
}

void Call::stageIn(const std::vector<HostView>& views) {
  const cuda::Stream& stream = context_->stream();
  for (const Slotted& one : slots_)
    if (one.input && one.copied() && !isStaged(one, views))
      stream.copyToDevice(one.address(), one.host->get(), one.bytes);
  const std::size_t total = bytesStaged(views);
  if (total == 0) return;
  const std::vector<Piece> pieces =
      piecesOf(views, std::clamp(total / kPieces / kLeastPiece * kLeastPiece, kLeastPiece, kMostPiece));
  std::vector<std::atomic<bool>> done(pieces.size());
  std::atomic<std::size_t> next{0};
  const auto copyNext = [&] {
    const std::size_t index = next++;
    if (index >= pieces.size()) return false;
    const Piece& piece = pieces[index];
    if (total >= kPastCaches)
      copyPastCaches(piece.pinned(), piece.view, piece.bytes);
    else
      std::memcpy(piece.pinned(), piece.view, piece.bytes);
    done[index].store(true, std::memory_order_release);
    return true;
  };
  const auto help = [&] {
    while (copyNext()) continue;
  };
  withCopyThreads(helpersFor(total), help, [&] {
    Transfers transfers(stream, total);
    for (std::size_t sent = 0; !transfers.over();) {
      if (!copyNext())
        lookFor([&] { return done[sent].load(std::memory_order_acquire); }, Pace::Clock::time_point::max());
      for (; sent < pieces.size() && done[sent].load(std::memory_order_acquire); ++sent)
        transfers.staged(*pieces[sent].slot, pieces[sent].bytes);
    }
  });
}

void Call::enqueueOut(const std::vector<HostView>& views) {
  const cuda::Stream& stream = context_->stream();
  for (const Slotted& one : slots_)
    if (!one.input && one.copied() && !isStaged(one, views))
      stream.copyToHost(one.host->get(), one.address(), one.bytes);
  outPieces_ = piecesOf(views, kOutputPiece);
  while (outDone_.size() < outPieces_.size()) outDone_.push_back(std::make_unique<cuda::Event>(stream.device(), false));
  for (std::size_t i = 0; i < outPieces_.size(); ++i) {
    const Piece& piece = outPieces_[i];
    stream.copyToHost(piece.pinned(), piece.slot->address() + piece.from, piece.bytes);
    outDone_[i]->record(stream);
  }
}

void Call::stageOut() {
  if (outPieces_.empty()) return;
  const cuda::Device& device = context_->stream().device();
  std::atomic<std::size_t> next{0};
  std::atomic<int> failed{cuda::kSuccess};
  const auto help = [&] {
    device.makeCurrentQuietly();
    for (std::size_t index = next++; index < outPieces_.size(); index = next++) {
      const Piece& piece = outPieces_[index];
      if (const int code = device.api().eventSynchronize(outDone_[index]->get()); code != cuda::kSuccess)
        failed = code;
      else
        std::memcpy(piece.view, piece.pinned(), piece.bytes);
    }
  };
  withCopyThreads(outPieces_.size() - 1, help, help);
  outPieces_.clear();
  cuda::check(failed, "Copying from the GPU");
}

}  // namespace trtforge
