// Device memory of the fake GPUs is host memory, so the fake engines compute on it; a book says which GPU each piece is on.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

#include "cuda-gpus.hpp"

namespace fake {

using Address = unsigned long long;

struct Block {
  Gpu* gpu;
  std::size_t bytes;
};

inline std::mutex memoryMutex;
inline std::map<Address, Block> blocks;
inline std::map<Address, Block> pinned;  // taken from the GPU that was current, and there for all

inline const Block* pieceOf(const std::map<Address, Block>& book, Address address, std::size_t bytes) {
  const auto after = book.upper_bound(address);
  if (after == book.begin()) return nullptr;
  const auto& [first, block] = *std::prev(after);
  return address - first <= block.bytes && bytes <= block.bytes - (address - first) ? &block : nullptr;
}

// What a copy on this GPU is told of device memory: CUDA would copy between GPUs by way of the host, which nothing that is tested means to do.
inline int reach(const Gpu* gpu, Address address, std::size_t bytes) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  const Block* block = pieceOf(blocks, address, bytes);
  return block == nullptr ? kInvalidValue : block->gpu == gpu ? 0 : kIllegalAddress;
}

// Whether a kernel on this GPU may touch it; pinned memory is every GPU's.
inline bool touches(const Gpu* gpu, const void* memory) {
  const auto address = reinterpret_cast<Address>(memory);
  std::lock_guard<std::mutex> lock(memoryMutex);
  const Block* block = pieceOf(blocks, address, 1);
  return block != nullptr ? block->gpu == gpu : pieceOf(pinned, address, 1) != nullptr;
}

// FAKE_ALLOCATION_FAILS: from which allocation on none is to be had, counted from when it was set.
inline bool allocationFails() {
  static int requested = 0, seen = 0;
  const int now = std::atoi(setting("FAKE_ALLOCATION_FAILS", "0"));
  if (now != requested) requested = now, seen = 0;
  return requested > 0 && ++seen >= requested;
}

inline void* aligned(std::size_t bytes) { return std::aligned_alloc(256, (bytes + 255) / 256 * 256); }

inline int allocate(Gpu* gpu, Address* address, std::size_t bytes) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  if (allocationFails()) return kOutOfMemory;
  if (bytes == 0) return kInvalidValue;
  if (gpu->usedBytes + bytes > gpu->totalBytes()) return kOutOfMemory;
  void* memory = aligned(bytes);
  std::memset(memory, 0xA5, bytes);  // the GPU's memory is not cleared
  *address = reinterpret_cast<Address>(memory);
  blocks.insert({*address, {gpu, bytes}});
  gpu->usedBytes += bytes;
  return 0;
}

// CUDA finds the GPU by the address. Here it must be the current one, so that memory freed after another GPU was made current shows as a leak.
inline int release(const Gpu* gpu, Address address) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  const auto block = blocks.find(address);
  if (block == blocks.end() || block->second.gpu != gpu) return kInvalidValue;
  block->second.gpu->usedBytes -= block->second.bytes;
  blocks.erase(block);
  return std::free(reinterpret_cast<void*>(address)), 0;
}

// FAKE_PINNED=none: no memory can be pinned.
inline int pin(Gpu* gpu, void** memory, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  if (*setting("FAKE_PINNED", "") != '\0') return kOutOfMemory;
  *memory = aligned(bytes);
  std::lock_guard<std::mutex> lock(memoryMutex);
  pinned.insert({reinterpret_cast<Address>(*memory), {gpu, bytes}});
  return ++gpu->usedBytes, 0;
}

inline int unpin(void* memory) {
  {
    std::lock_guard<std::mutex> lock(memoryMutex);
    const auto block = pinned.find(reinterpret_cast<Address>(memory));
    if (block == pinned.end()) return kInvalidValue;
    --block->second.gpu->usedBytes;
    pinned.erase(block);
  }
  return std::free(memory), 0;
}

}  // namespace fake
