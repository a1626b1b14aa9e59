// Shapes as the library passes them: 32-bit dimensions in 8.6, 64-bit ones since 10.0; eight at most.
#pragma once
#include <cstdint>
#include <vector>

namespace trtforge {

template <class Number>
struct Dims {
  static constexpr int kMax = 8;
  std::int32_t count = 0;
  Number values[kMax] = {};

  static Dims from(const std::vector<std::int64_t>& shape) {
    Dims dims;
    dims.count = static_cast<std::int32_t>(shape.size());
    for (std::size_t i = 0; i < shape.size() && i < kMax; ++i) dims.values[i] = static_cast<Number>(shape[i]);
    return dims;
  }
  // Empty where the count is not one a shape can have (-1: the library does not know the rank).
  std::vector<std::int64_t> toVector() const {
    std::vector<std::int64_t> shape;
    for (int i = 0; i < count && i < kMax; ++i) shape.push_back(values[i]);
    return shape;
  }
};

using Dims32 = Dims<std::int32_t>;
using Dims64 = Dims<std::int64_t>;
static_assert(sizeof(Dims32) == 36 && sizeof(Dims64) == 72, "the layout the library expects");

}  // namespace trtforge
