// Named tensors of an engine as the run path uses them: what the plan states, what a call requests, what comes out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "request.hpp"

namespace trtforge {

struct EngineTensor {
  std::string name;
  std::int32_t dtype = 0;
  bool input = false;
  bool host = false;  // its bytes lie in host memory: a shape tensor
  bool shapeTensor = false;
  std::vector<std::int64_t> shape;     // -1: open
  std::int32_t format = 0;             // 0 is linear
  std::vector<ProfileRange> profiles;  // inputs only; values for shape tensors
};

// What one input shall be.
struct InputShape {
  std::string name;
  std::vector<std::int64_t> shape;
  std::optional<std::vector<std::int64_t>> values;  // of a host tensor
};

struct OutputShape {
  std::string name;
  std::optional<std::vector<std::int64_t>> shape;  // nothing where it depends on the data
  std::int64_t bytes = 0;                          // an upper bound where the shape depends on the data
};

// Number of elements; -1 where a dimension is open.
std::int64_t volumeOf(const std::vector<std::int64_t>& shape);
// Bits of an element by `nvinfer1::DataType`, whose numbers mean the same in every generation; 0 for one not known.
int bitsOf(std::int32_t dtype);
std::int64_t bytesOf(std::int32_t dtype, std::int64_t elements);
// `1x3x224x224`, or `scalar`
std::string shown(const std::vector<std::int64_t>& shape);

}  // namespace trtforge
