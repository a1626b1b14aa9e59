// Memory for an output whose shape depends on the data: the library asks for it while it enqueues.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda.hpp"
#include "library.hpp"

namespace trtforge {

class OutputAllocator {
 public:
  // Allocates what is asked for and keeps it, growing.
  OutputAllocator(const cuda::Device& device, std::string name);
  // Returns the caller's memory, and nothing where more is requested.
  OutputAllocator(const cuda::Device& device, std::string name, void* memory, std::size_t bytes);
  ~OutputAllocator();
  OutputAllocator(const OutputAllocator&) = delete;
  OutputAllocator& operator=(const OutputAllocator&) = delete;

  // The IOutputAllocator in the layout of a generation.
  void* face(const InferenceLibrary& library) const;
  void beginRun() { shape_.clear(), known_ = false; }
  // False before the first run.
  bool known() const { return known_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  void* memory() const { return memory_; }
  // What the library asked for and did not get; 0 where it got all.
  std::size_t refusedBytes() const { return refused_; }

  void* reallocate(std::uint64_t bytes) noexcept;
  void notify(std::vector<std::int64_t> shape) noexcept;

 private:
  struct Faces;
  const cuda::Device& device_;
  std::string name_;
  bool owns_;
  cuda::DeviceBlock block_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t refused_ = 0;
  bool known_ = false;
  std::vector<std::int64_t> shape_;
  std::unique_ptr<Faces> faces_;
};

}  // namespace trtforge
