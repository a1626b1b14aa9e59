// A back end "tensorrt" for Triton's server on machines without a GPU: it loads no plan, and answers with sums that
// anyone can compute. So the server reads, checks and serves a repository as it is: configuration, warm-up, batches,
// sequences and their states.
//
// Every element of row r of an output is the sum of the first elements of row r of all inputs and states; a state's
// next content is its content plus one. `trtforge-stub.txt` in the version's folder has the model's tensors: lines of
// fields between tabs, `batched`, `output NAME TYPE DIM...`, `state INPUT OUTPUT`. Names and numbers of the interface:
// https://github.com/triton-inference-server/core/blob/main/include/triton/core/tritonbackend.h
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
struct Opaque;
using Error = Opaque*;
Error TRITONBACKEND_ModelInstanceModel(Opaque* instance, Opaque** model);
Error TRITONBACKEND_ModelInstanceSetState(Opaque* instance, void* state);
Error TRITONBACKEND_ModelInstanceState(Opaque* instance, void** state);
Error TRITONBACKEND_ModelRepository(Opaque* model, int* kind, const char** location);
Error TRITONBACKEND_ModelVersion(Opaque* model, uint64_t* version);
Error TRITONBACKEND_RequestInputCount(Opaque* request, uint32_t* count);
Error TRITONBACKEND_RequestInputByIndex(Opaque* request, uint32_t index, Opaque** input);
Error TRITONBACKEND_RequestOutputCount(Opaque* request, uint32_t* count);
Error TRITONBACKEND_RequestOutputName(Opaque* request, uint32_t index, const char** name);
Error TRITONBACKEND_RequestRelease(Opaque* request, uint32_t flags);
Error TRITONBACKEND_InputProperties(Opaque* input, const char** name, int* type, const int64_t** shape, uint32_t* rank,
                                    uint64_t* bytes, uint32_t* buffers);
Error TRITONBACKEND_InputBuffer(Opaque* input, uint32_t index, const void** buffer, uint64_t* bytes, int* memory,
                                int64_t* memory_id);
Error TRITONBACKEND_ResponseNew(Opaque** response, Opaque* request);
Error TRITONBACKEND_ResponseOutput(Opaque* response, Opaque** output, const char* name, int type, const int64_t* shape,
                                   uint32_t rank);
Error TRITONBACKEND_OutputBuffer(Opaque* output, void** buffer, uint64_t bytes, int* memory, int64_t* memory_id);
Error TRITONBACKEND_ResponseSend(Opaque* response, uint32_t flags, Error error);
Error TRITONBACKEND_StateNew(Opaque** state, Opaque* request, const char* name, int type, const int64_t* shape,
                             uint32_t rank);
Error TRITONBACKEND_StateBuffer(Opaque* state, void** buffer, uint64_t bytes, int* memory, int64_t* memory_id);
Error TRITONBACKEND_StateUpdate(Opaque* state);
Error TRITONSERVER_ErrorNew(int code, const char* message);
}

namespace {

constexpr int kInternal = 1;
constexpr uint32_t kFinal = 1;
constexpr uint32_t kReleaseAll = 1;

// TRITONSERVER_DataType
enum Type {
  kBool = 1,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  kBytes,
  kBf16
};

size_t size_of(int type) {
  switch (type) {
    case kBool:
    case kUint8:
    case kInt8:
      return 1;
    case kUint16:
    case kInt16:
    case kFp16:
    case kBf16:
      return 2;
    case kUint32:
    case kInt32:
    case kFp32:
      return 4;
    case kUint64:
    case kInt64:
    case kFp64:
      return 8;
    default:
      return 0;
  }
}

template <typename T>
double read_as(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

template <typename T>
void write_as(char* to, double value) {
  const T own = static_cast<T>(value);
  std::memcpy(to, &own, sizeof own);
}

float wide(uint16_t half, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const uint32_t exponent = (half >> mantissa_bits) & ((1u << exponent_bits) - 1);
  if (exponent == 0) return 0;
  const uint32_t bits = (uint32_t(half & 0x8000) << 16) | ((exponent + 127 - ((1u << (exponent_bits - 1)) - 1)) << 23) |
                        (uint32_t(half & ((1u << mantissa_bits) - 1)) << (23 - mantissa_bits));
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds towards zero, and to zero below the normal numbers: sums of small whole numbers are exact.
uint16_t narrow(float value, int exponent_bits) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = int((bits >> 23) & 255) - 127 + bias;
  const uint16_t sign = uint16_t((bits >> 16) & 0x8000);
  if (exponent <= 0) return sign;
  if (exponent >= (1 << exponent_bits) - 1) return uint16_t(sign | (((1u << exponent_bits) - 1) << mantissa_bits));
  return uint16_t(sign | (uint32_t(exponent) << mantissa_bits) | ((bits & 0x7fffff) >> (23 - mantissa_bits)));
}

double element(int type, const char* at) {
  switch (type) {
    case kBool:
    case kUint8:
      return read_as<uint8_t>(at);
    case kInt8:
      return read_as<int8_t>(at);
    case kUint16:
      return read_as<uint16_t>(at);
    case kInt16:
      return read_as<int16_t>(at);
    case kUint32:
      return read_as<uint32_t>(at);
    case kInt32:
      return read_as<int32_t>(at);
    case kUint64:
      return read_as<uint64_t>(at);
    case kInt64:
      return read_as<int64_t>(at);
    case kFp32:
      return read_as<float>(at);
    case kFp64:
      return read_as<double>(at);
    case kFp16:
      return wide(uint16_t(read_as<uint16_t>(at)), 5);
    case kBf16:
      return wide(uint16_t(read_as<uint16_t>(at)), 8);
    default:
      return 0;
  }
}

void set_element(int type, char* at, double value) {
  switch (type) {
    case kBool:
      write_as<uint8_t>(at, value != 0);
      break;
    case kUint8:
      write_as<uint8_t>(at, value);
      break;
    case kInt8:
      write_as<int8_t>(at, value);
      break;
    case kUint16:
      write_as<uint16_t>(at, value);
      break;
    case kInt16:
      write_as<int16_t>(at, value);
      break;
    case kUint32:
      write_as<uint32_t>(at, value);
      break;
    case kInt32:
      write_as<int32_t>(at, value);
      break;
    case kUint64:
      write_as<uint64_t>(at, value);
      break;
    case kInt64:
      write_as<int64_t>(at, value);
      break;
    case kFp32:
      write_as<float>(at, value);
      break;
    case kFp64:
      write_as<double>(at, value);
      break;
    case kFp16:
      write_as<uint16_t>(at, narrow(float(value), 5));
      break;
    case kBf16:
      write_as<uint16_t>(at, narrow(float(value), 8));
      break;
    default:
      break;
  }
}

struct Output {
  int type = 0;
  std::vector<int64_t> dims;
};

struct Model {
  bool batched = false;
  std::map<std::string, Output> outputs;
  std::map<std::string, std::string> states;
};

Model* read_model(const std::string& path) {
  std::ifstream file(path);
  if (!file) return nullptr;
  auto* model = new Model;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string kind, name, field;
    std::getline(fields, kind, '\t');
    std::getline(fields, name, '\t');
    std::getline(fields, field, '\t');
    if (kind == "batched") model->batched = true;
    if (kind == "state") model->states[name] = field;
    if (kind != "output") continue;
    Output& output = model->outputs[name];
    output.type = std::stoi(field);
    while (std::getline(fields, field, '\t')) output.dims.push_back(std::stoll(field));
  }
  return model;
}

struct Input {
  std::string name;
  int type = 0;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  double first_of(int64_t row, int64_t rows) const {
    const size_t width = bytes.size() / size_t(rows);
    return width < size_of(type) || size_of(type) == 0 ? 0 : element(type, bytes.data() + size_t(row) * width);
  }
};

std::vector<Input> inputs_of(Opaque* request) {
  uint32_t count = 0;
  TRITONBACKEND_RequestInputCount(request, &count);
  std::vector<Input> inputs(count);
  for (uint32_t index = 0; index < count; index++) {
    Opaque* input = nullptr;
    const char* name = "";
    const int64_t* shape = nullptr;
    uint32_t rank = 0, buffers = 0;
    uint64_t bytes = 0;
    Input& own = inputs[index];
    TRITONBACKEND_RequestInputByIndex(request, index, &input);
    TRITONBACKEND_InputProperties(input, &name, &own.type, &shape, &rank, &bytes, &buffers);
    own.name = name;
    own.shape.assign(shape, shape + rank);
    for (uint32_t part = 0; part < buffers; part++) {
      const void* data = nullptr;
      uint64_t size = 0;
      int memory = 0;
      int64_t id = 0;
      TRITONBACKEND_InputBuffer(input, part, &data, &size, &memory, &id);
      if (data != nullptr)
        own.bytes.insert(own.bytes.end(), static_cast<const char*>(data), static_cast<const char*>(data) + size);
    }
  }
  return inputs;
}

void answer(Opaque* request, const Model& model) {
  const std::vector<Input> inputs = inputs_of(request);
  int64_t rows = 1;
  if (model.batched)
    for (const Input& input : inputs)
      if (!model.states.count(input.name) && !input.shape.empty() && input.shape[0] > 0) rows = input.shape[0];
  std::vector<double> sums(size_t(rows), 0.0);
  for (const Input& input : inputs)
    for (int64_t row = 0; row < rows; row++) sums[size_t(row)] += input.first_of(row, rows);

  Opaque* response = nullptr;
  TRITONBACKEND_ResponseNew(&response, request);
  uint32_t count = 0;
  TRITONBACKEND_RequestOutputCount(request, &count);
  for (uint32_t index = 0; index < count; index++) {
    const char* name = "";
    TRITONBACKEND_RequestOutputName(request, index, &name);
    const auto found = model.outputs.find(name);
    if (found == model.outputs.end()) continue;
    std::vector<int64_t> shape;
    if (model.batched) shape.push_back(rows);
    // An open dimension has no size here: one stands for all.
    for (const int64_t size : found->second.dims) shape.push_back(size < 0 ? 1 : size);
    size_t elements = 1;
    for (const int64_t size : shape) elements *= size_t(size);
    const size_t width = size_of(found->second.type);
    Opaque* output = nullptr;
    void* buffer = nullptr;
    int memory = 0;
    int64_t id = 0;
    TRITONBACKEND_ResponseOutput(response, &output, name, found->second.type, shape.data(), uint32_t(shape.size()));
    TRITONBACKEND_OutputBuffer(output, &buffer, elements * width, &memory, &id);
    for (size_t at = 0; at < elements; at++)
      set_element(found->second.type, static_cast<char*>(buffer) + at * width, sums[at * size_t(rows) / elements]);
  }
  for (const Input& input : inputs) {
    const auto pair = model.states.find(input.name);
    if (pair == model.states.end()) continue;
    Opaque* state = nullptr;
    void* buffer = nullptr;
    int memory = 0;
    int64_t id = 0;
    const Error error = TRITONBACKEND_StateNew(&state, request, pair->second.c_str(), input.type, input.shape.data(),
                                               uint32_t(input.shape.size()));
    if (error != nullptr) continue;
    TRITONBACKEND_StateBuffer(state, &buffer, input.bytes.size(), &memory, &id);
    const size_t width = size_of(input.type);
    for (size_t at = 0; width > 0 && at + width <= input.bytes.size(); at += width)
      set_element(input.type, static_cast<char*>(buffer) + at, element(input.type, input.bytes.data() + at) + 1);
    TRITONBACKEND_StateUpdate(state);
  }
  TRITONBACKEND_ResponseSend(response, kFinal, nullptr);
  TRITONBACKEND_RequestRelease(request, kReleaseAll);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED Error TRITONBACKEND_ModelInstanceInitialize(Opaque* instance) {
  Opaque* model = nullptr;
  const char* location = "";
  int kind = 0;
  uint64_t version = 0;
  TRITONBACKEND_ModelInstanceModel(instance, &model);
  TRITONBACKEND_ModelRepository(model, &kind, &location);
  TRITONBACKEND_ModelVersion(model, &version);
  const std::string path = std::string(location) + "/" + std::to_string(version) + "/trtforge-stub.txt";
  Model* own = read_model(path);
  if (own == nullptr) return TRITONSERVER_ErrorNew(kInternal, (path + " is missing").c_str());
  return TRITONBACKEND_ModelInstanceSetState(instance, own);
}

EXPORTED Error TRITONBACKEND_ModelInstanceFinalize(Opaque* instance) {
  void* model = nullptr;
  TRITONBACKEND_ModelInstanceState(instance, &model);
  delete static_cast<Model*>(model);
  return nullptr;
}

EXPORTED Error TRITONBACKEND_ModelInstanceExecute(Opaque* instance, Opaque** requests, const uint32_t count) {
  void* model = nullptr;
  TRITONBACKEND_ModelInstanceState(instance, &model);
  for (uint32_t index = 0; index < count; index++) answer(requests[index], *static_cast<Model*>(model));
  return nullptr;
}
