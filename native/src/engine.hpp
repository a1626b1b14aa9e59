// A plan loaded onto a GPU. Objects made from it hold it by `shared_ptr`; the weights go when the last of them does.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda.hpp"
#include "library.hpp"
#include "listeners.hpp"
#include "plan_file.hpp"
#include "plugins.hpp"
#include "tensors.hpp"

namespace trtforge {

struct OpenRequest {
  std::string inferenceLibrary, pluginLibrary, planPath;  // no plug-in library: empty
  std::string label;                                      // names the engine on the time lines of profilers
  std::vector<std::string> pluginPaths;
  int device = 0;
  bool allowHostCode = false;
  enum class Budget { kAll, kAutomatic, kBytes } budget = Budget::kAll;
  std::int64_t budgetBytes = 0;  // for kBytes
};

struct EngineFacts {
  std::string name;
  std::int32_t layers = 0, profiles = 0, auxStreams = 0;
  std::int64_t deviceMemoryBytes = 0;
  std::vector<std::int64_t> deviceMemoryBytesPerProfile;
  std::int64_t streamableWeightsBytes = 0;
  std::int64_t weightBudgetBytes = 0;  // of these, what stays on the GPU
  bool refittable = false;
  std::vector<EngineTensor> tensors;
  std::string libraryVersion;
  double loadMs = 0;
  LoadCost loadCost;
  cuda::Device::Memory before, after;
};

class BlockPool;

class Engine {
 public:
  // Throws TF_GPU_UNAVAILABLE, TF_PLAN_INVALID, TF_PLAN_LOAD_FAILED, TF_GPU_MEMORY, TF_LIBRARY_…
  static std::shared_ptr<Engine> open(const OpenRequest& request, Listener& listener);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineFacts& facts() const { return facts_; }
  const std::string& label() const { return label_; }
  // Null for a name the engine does not have.
  const EngineTensor* find(const std::string& name) const;
  // Throws TF_SESSION_INPUT that lists the names there are.
  const EngineTensor& tensor(const std::string& name) const;

  const InferenceLibrary& library() const { return library_; }
  bool generation8() const { return library_.generation() == Generation::k8; }
  // The ICudaEngine.
  const Facade& object() const { return object_; }
  const cuda::Device& device() const { return device_; }
  // Staging and device buffers that calls give back and take again.
  BlockPool& pool() const { return *pool_; }

  // Bytes of activations that an execution with this profile needs.
  std::int64_t activationBytes(int profile) const {
    return facts_.deviceMemoryBytesPerProfile.at(static_cast<std::size_t>(profile));
  }
  // True where weights come from host memory while the engine runs: such work cannot be captured.
  bool streamsWeights() const { return streamsWeights_; }
  // True where a refit failed half-way: some weights are those of another model.
  std::atomic<bool> halfRefitted{false};
  // The inspector's JSON about the whole engine.
  std::string layers(Listener& listener) const;

 private:
  Engine(const InferenceLibrary& library, const cuda::Device& device, std::string label);
  void load(const OpenRequest& request, Listener& listener);
  void setWeightBudget(const OpenRequest& request, Listener& listener);
  void readFacts();

  const InferenceLibrary& library_;
  const cuda::Device& device_;
  const std::string label_;
  EngineFacts facts_;
  bool streamsWeights_ = false;
  std::unique_ptr<BlockPool> pool_;
  // Destroyed from the last line up.
  Owned runtime_;
  std::unique_ptr<Plugins> plugins_;
  Owned object_;
};

// True where the library's lines since the listener began report memory that ran out.
bool ranOutOfMemory(Listener& listener, bool errorsAlone = false);
// TF_GPU_MEMORY with those lines, and with the bytes they name where those are more than `atLeast`.
Failure outOfMemory(const cuda::Device& device, Listener& listener, const std::string& what, std::size_t atLeast);

}  // namespace trtforge
