#include "tensors.hpp"

namespace trtforge {

std::int64_t volumeOf(const std::vector<std::int64_t>& shape) {
  std::int64_t volume = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return -1;
    volume *= size;
  }
  return volume;
}

int bitsOf(std::int32_t dtype) {
  // FLOAT, HALF, INT8, INT32, BOOL, UINT8, FP8, BF16, INT64, INT4, FP4, E8M0
  constexpr int kBits[] = {32, 16, 8, 32, 8, 8, 8, 16, 64, 4, 4, 8};
  constexpr int kKnown = sizeof kBits / sizeof kBits[0];
  return dtype >= 0 && dtype < kKnown ? kBits[dtype] : 0;
}

std::int64_t bytesOf(std::int32_t dtype, std::int64_t elements) { return (elements * bitsOf(dtype) + 7) / 8; }

std::string shown(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const std::int64_t size : shape)
    text += (text.empty() ? "" : "x") + (size < 0 ? std::string("?") : std::to_string(size));
  return text;
}

}  // namespace trtforge
