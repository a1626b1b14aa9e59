// What the fake parser passes to the fake refitter: scalar weights of an ONNX file by name.
#pragma once
#include <fstream>
#include <iterator>
#include <map>

#include "objects.hpp"

namespace fake {

struct Refitter : Worker {
  // Those that the engine takes, and those that were passed so far.
  std::map<std::string, double> takes, given;
};

// A message of protobuf, field by field.
class Message {
 public:
  explicit Message(std::string bytes) : bytes_(std::move(bytes)) {}
  // Goes to the next field; false at the end. `text` is its content, `number` of those without.
  bool next() {
    if (at_ >= bytes_.size()) return false;
    const std::uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    const int wire = static_cast<int>(key & 7);
    text.clear();
    if (wire == 0) number = varint();
    const std::size_t size = wire == 2 ? varint() : wire == 1 ? 8 : wire == 5 ? 4 : 0;
    text = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }
  int field = 0;
  std::uint64_t number = 0;
  std::string text;

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    return value;
  }
  std::string bytes_;
  std::size_t at_ = 0;
};

// The first element of an FP32 or FP16 tensor (TensorProto).
inline double firstElement(const std::string& raw, std::uint64_t type) {
  if (type == 1 && raw.size() >= 4) {
    float value;
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, raw.data(), raw.size() < 2 ? raw.size() : 2);
  const double fraction = (half & 1023) / 1024.0;
  const int exponent = half >> 10 & 31;
  double value = exponent == 0 ? fraction : 1 + fraction;
  for (int power = exponent == 0 ? 14 : 15 - exponent; power > 0; --power) value /= 2;
  for (int power = exponent - 15; power > 0; --power) value *= 2;
  return half >> 15 != 0 ? -value : value;
}

// Initializers of a model's graph by name.
inline std::map<std::string, double> weightsOf(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::map<std::string, double> weights;
  Message model(std::string(std::istreambuf_iterator<char>(file), {}));
  while (model.next()) {
    if (model.field != 7) continue;
    Message graph(model.text);
    while (graph.next()) {
      if (graph.field != 5) continue;
      Message tensor(graph.text);
      std::string name, raw;
      std::uint64_t type = 1;
      while (tensor.next()) {
        if (tensor.field == 2) type = tensor.number;
        if (tensor.field == 8) name = tensor.text;
        if (tensor.field == 4 || tensor.field == 9) raw = tensor.text;
      }
      weights[name] = firstElement(raw, type);
    }
  }
  return weights;
}

}  // namespace fake
