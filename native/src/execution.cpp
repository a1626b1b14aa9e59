#include "execution.hpp"

#include <algorithm>
#include <cstring>

#include "dims.hpp"
#include "output_allocator.hpp"

namespace trtforge {

namespace {

constexpr std::int32_t kUserManaged = 2;  // ExecutionContextAllocationStrategy
constexpr std::int32_t kInt32 = 3;        // DataType
constexpr std::int32_t kInt64 = 8;
constexpr std::size_t kLeastValues = 8;

// Listens to the library for one step, on this thread.
class Hearing {
 public:
  explicit Hearing(Listener& listener) : listening_(listener, Reach::kThread) { listener.forget(); }

 private:
  Listening listening_;
};

Owned newContext(const Engine& engine) {
  const InferenceLibrary& library = engine.library();
  return Owned(library, library.has(Slot::ICudaEngine_createExecutionContext_1)
                            ? engine.object().call(Slot::ICudaEngine_createExecutionContext_1, kUserManaged)
                            : engine.object().call(Slot::ICudaEngine_createExecutionContextWithoutDeviceMemory_0));
}

void giveMemory(const Engine& engine, const Facade& context, const cuda::DeviceBlock& activations) {
  if (engine.library().has(Slot::IExecutionContext_setDeviceMemoryV2_2))
    context.call(Slot::IExecutionContext_setDeviceMemoryV2_2, activations.get(),
                 static_cast<std::int64_t>(activations.bytes()));
  else
    context.call(Slot::IExecutionContext_setDeviceMemory_1, activations.get());
}

}  // namespace

Execution::Execution(std::shared_ptr<Engine> engine, int profile, const cuda::DeviceBlock& activations,
                     const cuda::Stream& stream)
    : engine_(std::move(engine)) {
  const Hearing hearing(listener_);
  const auto fail = [&](const std::string& sentence) {
    if (ranOutOfMemory(listener_))
      return outOfMemory(engine_->device(), listener_, "execution context", activations.bytes());
    return listener_.failure("TF_CONTEXT_FAILED", sentence);
  };
  object_ = newContext(*engine_);
  if (!object_) throw fail(engine_->library().name() + " could not make an execution context.");
  if (!object_.call(Slot::IExecutionContext_setOptimizationProfileAsync_2, static_cast<std::int32_t>(profile),
                    stream.get()))
    throw fail("The context cannot take profile " + std::to_string(profile) + ".");
  stream.synchronize();
  // After the profile, which decides how much is needed.
  giveMemory(*engine_, object_, activations);
  for (const EngineTensor& tensor : engine_->facts().tensors)
    if (tensor.input && tensor.host) values_[tensor.name];
}

Execution::~Execution() {
  if (cuda::ending())
    object_.release();
  else
    engine_->device().makeCurrentQuietly();
}

void Execution::setValues(const EngineTensor& tensor, const std::vector<std::int64_t>& values) {
  if (tensor.dtype != kInt32 && tensor.dtype != kInt64)
    throw Failure("TF_SESSION_BINDING", "The shape tensor " + tensor.name +
                                            " is neither int32 nor int64, the types whose values can be passed.");
  std::vector<std::int64_t>& kept = values_[tensor.name];
  // The library keeps the address: it moves only to grow.
  if (kept.size() < values.size() || kept.empty()) kept.resize(std::max(values.size(), kLeastValues));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == kInt64) {
      kept[i] = values[i];
      continue;
    }
    const auto narrow = static_cast<std::int32_t>(values[i]);
    if (narrow != values[i])
      throw Failure("TF_SESSION_INPUT", "The value " + std::to_string(values[i]) + " of the shape tensor " +
                                            tensor.name + " does not fit int32.");
    std::memcpy(reinterpret_cast<char*>(kept.data()) + i * sizeof narrow, &narrow, sizeof narrow);
  }
  setAddress(tensor.name, kept.data());
}

void Execution::setShapes(const std::vector<InputShape>& shapes) {
  const Hearing hearing(listener_);
  // Values first: shapes of other tensors may follow from them.
  for (const InputShape& input : shapes) {
    const EngineTensor& tensor = engine_->tensor(input.name);
    if (!tensor.input)
      throw Failure("TF_SESSION_INPUT", input.name + " is an output of the engine; only inputs take a shape.");
    if (input.shape.size() > Dims64::kMax)
      throw Failure("TF_SESSION_INPUT", "The shape of " + input.name + " has more than 8 dimensions.");
    if (tensor.host != input.values.has_value())
      throw Failure("TF_SESSION_INPUT",
                    input.name + (tensor.host ? " is a shape tensor on the host: its values must be passed."
                                              : " is not a shape tensor on the host: it takes no values."));
    if (!input.values.has_value()) continue;
    if (volumeOf(input.shape) != static_cast<std::int64_t>(input.values->size()))
      throw Failure("TF_SESSION_INPUT", "The shape tensor " + input.name + " of shape " + shown(input.shape) + " got " +
                                            std::to_string(input.values->size()) + " values.");
    setValues(tensor, *input.values);
  }
  for (const InputShape& input : shapes) {
    bool set = false;
    if (engine_->generation8()) {
      const Dims32 dims = Dims32::from(input.shape);
      set =
          object_.call(declaredIn<Generation::k8>(Slot::IExecutionContext_setInputShape_2), input.name.c_str(), &dims);
    } else {
      const Dims64 dims = Dims64::from(input.shape);
      set =
          object_.call(declaredIn<Generation::k10>(Slot::IExecutionContext_setInputShape_2), input.name.c_str(), &dims);
    }
    if (!set)
      throw listener_.failure("TF_SESSION_INPUT", "The engine does not take the shape " + shown(input.shape) +
                                                      " for its input " + input.name + ".");
  }
}

std::vector<std::int64_t> Execution::shapeOf(const char* name) const {
  if (engine_->generation8())
    return object_.call(declaredIn<Generation::k8>(Slot::IExecutionContext_getTensorShape_1), name).toVector();
  return object_.call(declaredIn<Generation::k10>(Slot::IExecutionContext_getTensorShape_1), name).toVector();
}

std::vector<OutputShape> Execution::outputs() {
  const Hearing hearing(listener_);
  const char* open[1] = {nullptr};
  const auto missing = object_.call(Slot::IExecutionContext_inferShapes_2, 1, static_cast<const char**>(open));
  if (missing > 0)
    throw Failure("TF_SESSION_INPUT", std::string("The input ") + (open[0] == nullptr ? "" : open[0]) +
                                          " still has an open shape or no values.");
  if (missing < 0) throw listener_.failure("TF_SESSION_INPUT", "The shapes passed do not fit each other.");
  std::vector<OutputShape> all;
  for (const EngineTensor& tensor : engine_->facts().tensors) {
    if (tensor.input) continue;
    OutputShape output;
    output.name = tensor.name;
    const std::vector<std::int64_t> shape = shapeOf(tensor.name.c_str());
    const std::int64_t elements = volumeOf(shape);
    if (elements >= 0) output.shape = shape;
    output.bytes =
        elements >= 0
            ? bytesOf(tensor.dtype, elements)
            : std::max<std::int64_t>(0, object_.call(Slot::IExecutionContext_getMaxOutputSize_1, tensor.name.c_str()));
    all.push_back(std::move(output));
  }
  return all;
}

void Execution::setAddress(const std::string& name, void* memory) {
  if (object_.call(Slot::IExecutionContext_setTensorAddress_2, name.c_str(), memory)) return;
  throw Failure("TF_RUN_FAILED", engine_->library().name() + " rejects the memory passed for " + name + ".");
}

void Execution::setAllocator(const std::string& name, OutputAllocator* allocator) {
  if (object_.call(Slot::IExecutionContext_setOutputAllocator_2, name.c_str(), allocator->face(engine_->library())))
    return;
  throw Failure("TF_RUN_FAILED", engine_->library().name() + " takes no allocator for the output " + name + ".");
}

void Execution::clearAllocator(const std::string& name) noexcept {
  object_.call(Slot::IExecutionContext_setOutputAllocator_2, name.c_str(), static_cast<void*>(nullptr));
}

void Execution::setProfiler(void* profiler) { object_.call(Slot::IExecutionContext_setProfiler_1, profiler); }

void Execution::setEnqueueEmitsProfile(bool emits) {
  object_.call(Slot::IExecutionContext_setEnqueueEmitsProfile_1, emits);
}

void Execution::reportToProfiler() {
  if (!object_.call(Slot::IExecutionContext_reportToProfiler_0))
    throw Failure("TF_RUN_FAILED", engine_->library().name() + " did not report its layers' times.");
}

void Execution::enqueue(const cuda::Stream& stream) {
  const Hearing hearing(listener_);
  if (object_.call(Slot::IExecutionContext_enqueueV3_1, stream.get())) return;
  if (ranOutOfMemory(listener_)) throw outOfMemory(engine_->device(), listener_, "work of the engine", 0);
  throw listener_.failure("TF_RUN_FAILED", engine_->library().name() + " could not enqueue the engine's work.");
}

}  // namespace trtforge
