// One IExecutionContext: shapes, addresses, enqueue. Not for two threads at once.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine.hpp"

namespace trtforge {

class OutputAllocator;

class Execution {
 public:
  // `activations` holds at least `engine.activationBytes(profile)` bytes, and may serve several executions as long as
  // their work is ordered on one stream. On 8.6 a profile of an engine with open dimensions serves one execution at a
  // time. The device must be current. Throws TF_CONTEXT_FAILED, TF_GPU_MEMORY.
  Execution(std::shared_ptr<Engine> engine, int profile, const cuda::DeviceBlock& activations,
            const cuda::Stream& stream);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Engine& engine() const { return *engine_; }
  // Inputs that are not named keep what they have. Throws TF_SESSION_INPUT with the library's own words.
  void setShapes(const std::vector<InputShape>& shapes);
  // Of all outputs, at the shapes set. Throws TF_SESSION_INPUT where inputs are still open.
  std::vector<OutputShape> outputs();
  // Of a device tensor, or of a host output. Throws TF_RUN_FAILED.
  void setAddress(const std::string& name, void* memory);
  void setAllocator(const std::string& name, OutputAllocator* allocator);
  void clearAllocator(const std::string& name) noexcept;
  // An IProfiler (layer_times.hpp), or null.
  void setProfiler(void* profiler);
  // False where profiles are reported by `reportToProfiler` alone.
  void setEnqueueEmitsProfile(bool emits);
  void reportToProfiler();
  // Throws TF_RUN_FAILED, TF_GPU_MEMORY with the library's lines. The stream must not be the default one.
  void enqueue(const cuda::Stream& stream);

  // The call that set shapes and addresses last; calls that share an execution check it.
  const void* boundTo = nullptr;

 private:
  void setValues(const EngineTensor& tensor, const std::vector<std::int64_t>& values);
  std::vector<std::int64_t> shapeOf(const char* name) const;

  const std::shared_ptr<Engine> engine_;
  // Values of host inputs, where the library reads them; at least 64 bytes each.
  std::map<std::string, std::vector<std::int64_t>> values_;
  // Of the step that goes on.
  Listener listener_;
  Owned object_;
};

}  // namespace trtforge
