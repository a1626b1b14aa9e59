#include "output_allocator.hpp"

#include "dims.hpp"
#include "versioned.hpp"

namespace trtforge {

namespace {

// IOutputAllocator of 8.6: its version, its two functions, then the destructors.
class PlainFace {
 public:
  explicit PlainFace(OutputAllocator& to) : to_(to) {}
  virtual std::int32_t getInterfaceVersion() const noexcept { return 1; }
  virtual void* reallocateOutput(const char*, void*, std::uint64_t bytes, std::uint64_t) noexcept {
    return to_.reallocate(bytes);
  }
  virtual void notifyShape(const char*, const Dims32& shape) noexcept { to_.notify(shape.toVector()); }
  virtual ~PlainFace() = default;

 private:
  OutputAllocator& to_;
};

// IOutputAllocator from 10.0 on.
class VersionedFace : public Versioned {
 public:
  explicit VersionedFace(OutputAllocator& to) : to_(to) {}
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"IOutputAllocator", 1, 0}; }
  virtual void* reallocateOutput(const char*, void*, std::uint64_t bytes, std::uint64_t) noexcept {
    return to_.reallocate(bytes);
  }
  virtual void* reallocateOutputAsync(const char*, void*, std::uint64_t bytes, std::uint64_t, cuda::StreamHandle) {
    return to_.reallocate(bytes);
  }
  virtual void notifyShape(const char*, const Dims64& shape) noexcept { to_.notify(shape.toVector()); }

 private:
  OutputAllocator& to_;
};

}  // namespace

struct OutputAllocator::Faces {
  explicit Faces(OutputAllocator& to) : plain(to), versioned(to) {}
  PlainFace plain;
  VersionedFace versioned;
};

OutputAllocator::OutputAllocator(const cuda::Device& device, std::string name)
    : device_(device), name_(std::move(name)), owns_(true), faces_(std::make_unique<Faces>(*this)) {}

OutputAllocator::OutputAllocator(const cuda::Device& device, std::string name, void* memory, std::size_t bytes)
    : device_(device),
      name_(std::move(name)),
      owns_(false),
      memory_(memory),
      bytes_(bytes),
      faces_(std::make_unique<Faces>(*this)) {}

OutputAllocator::~OutputAllocator() = default;

void* OutputAllocator::face(const InferenceLibrary& library) const {
  return library.generation() == Generation::k8 ? static_cast<void*>(&faces_->plain)
                                                : static_cast<void*>(&faces_->versioned);
}

void* OutputAllocator::reallocate(std::uint64_t bytes) noexcept {
  refused_ = 0;
  if (bytes <= bytes_ && memory_ != nullptr) return memory_;
  if (owns_) {
    try {
      block_ = cuda::DeviceBlock();
      memory_ = nullptr;
      bytes_ = 0;
      block_ = cuda::DeviceBlock(device_, bytes, "output " + name_);
      memory_ = block_.get();
      bytes_ = bytes;
      return memory_;
    } catch (const std::exception&) {
    }
  }
  refused_ = bytes;
  return nullptr;
}

void OutputAllocator::notify(std::vector<std::int64_t> shape) noexcept {
  shape_ = std::move(shape);
  known_ = true;
}

}  // namespace trtforge
