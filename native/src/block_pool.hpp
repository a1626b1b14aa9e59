// Pinned and device buffers of an engine's calls, kept for the next call that needs as much.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "cuda.hpp"

namespace trtforge {

class BlockPool {
 public:
  explicit BlockPool(const cuda::Device& device) : device_(device) {}

  // Both throw TF_GPU_MEMORY; what is kept is let go first.
  std::shared_ptr<cuda::DeviceBlock> device(std::size_t bytes, const std::string& what);
  std::shared_ptr<cuda::HostBlock> host(std::size_t bytes, const std::string& what);
  // A block that someone else still holds is not kept: it goes with its last holder.
  void giveBack(std::shared_ptr<cuda::DeviceBlock> block);
  void giveBack(std::shared_ptr<cuda::HostBlock> block);
  void clear();

 private:
  template <class Block>
  std::shared_ptr<Block> take(std::vector<std::shared_ptr<Block>>& kept, std::size_t bytes, const std::string& what);
  template <class Block>
  void keep(std::vector<std::shared_ptr<Block>>& kept, std::shared_ptr<Block> block);

  const cuda::Device& device_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<cuda::DeviceBlock>> deviceBlocks_;
  std::vector<std::shared_ptr<cuda::HostBlock>> hostBlocks_;
};

}  // namespace trtforge
