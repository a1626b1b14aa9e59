#include "block_pool.hpp"

#include <algorithm>

namespace trtforge {

namespace {

constexpr std::size_t kKept = 32;
// A block this much larger than what is asked for still serves.
constexpr std::size_t kSlack = 4096;

std::size_t largestThatServes(std::size_t bytes) { return bytes + bytes / 2 + kSlack; }

}  // namespace

template <class Block>
std::shared_ptr<Block> BlockPool::take(std::vector<std::shared_ptr<Block>>& kept, std::size_t bytes,
                                       const std::string& what) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto best = kept.end();
    for (auto it = kept.begin(); it != kept.end(); ++it)
      if ((*it)->bytes() >= bytes && (*it)->bytes() <= largestThatServes(bytes) &&
          (best == kept.end() || (*it)->bytes() < (*best)->bytes()))
        best = it;
    if (best != kept.end()) {
      auto block = std::move(*best);
      kept.erase(best);
      return block;
    }
  }
  try {
    return std::make_shared<Block>(device_, bytes, what);
  } catch (const Failure&) {
    clear();
    return std::make_shared<Block>(device_, bytes, what);
  }
}

template <class Block>
void BlockPool::keep(std::vector<std::shared_ptr<Block>>& kept, std::shared_ptr<Block> block) {
  if (block == nullptr || block.use_count() > 1) return;
  std::shared_ptr<Block> oldest;
  std::lock_guard<std::mutex> lock(mutex_);
  if (kept.size() == kKept) {
    oldest = std::move(kept.front());
    kept.erase(kept.begin());
  }
  kept.push_back(std::move(block));
}

std::shared_ptr<cuda::DeviceBlock> BlockPool::device(std::size_t bytes, const std::string& what) {
  return take(deviceBlocks_, bytes, what);
}
std::shared_ptr<cuda::HostBlock> BlockPool::host(std::size_t bytes, const std::string& what) {
  return take(hostBlocks_, bytes, what);
}
void BlockPool::giveBack(std::shared_ptr<cuda::DeviceBlock> block) { keep(deviceBlocks_, std::move(block)); }
void BlockPool::giveBack(std::shared_ptr<cuda::HostBlock> block) { keep(hostBlocks_, std::move(block)); }

void BlockPool::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  deviceBlocks_.clear();
  hostBlocks_.clear();
}

}  // namespace trtforge
