// A stream, the activations and the thread of runs that follow one another. Its calls (call.hpp) are fixed shapes and
// buffers.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "execution.hpp"
#include "layer_times.hpp"
#include "worker.hpp"

namespace trtforge {

class Call;

class Context : public std::enable_shared_from_this<Context> {
 public:
  // `activations` is memory that contexts of several engines share, one at a time; null for memory of its own.
  // Throws TF_CONTEXT_FAILED, TF_GPU_MEMORY, TF_SESSION_INPUT for a profile the engine does not have, and for shared
  // memory that is too small or on another GPU.
  static std::shared_ptr<Context> create(std::shared_ptr<Engine> engine, int profile, bool profiling,
                                         std::shared_ptr<cuda::DeviceBlock> activations);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Throws TF_SESSION_INPUT.
  std::vector<OutputShape> outputsFor(const std::vector<InputShape>& shapes);
  // Ends the thread once its runs are over, then lets go of calls, activations and the engine. Harmless twice.
  void close();
  // With `mutex` held, after the engine's weights were replaced: no CUDA graph with the old ones runs again.
  void rebind();

  // Null where it was made without profiling.
  LayerTimes* layerTimes() const { return layerTimes_.get(); }
  Worker& worker() const { return *worker_; }

  // For calls, which hold `mutex` while they use what follows.
  std::mutex mutex;
  // Throws TF_SESSION_CLOSED once closed.
  const std::shared_ptr<Engine>& engine() const;
  const cuda::Stream& stream() const { return *stream_; }
  // An execution for one call: its own, so that a graph captured from it stays true, or on 8.6 the only one there is.
  std::shared_ptr<Execution> takeExecution();
  void giveBack(std::shared_ptr<Execution> execution);
  void add(const std::shared_ptr<Call>& call);

 private:
  Context(std::shared_ptr<Engine> engine, int profile);
  std::shared_ptr<Execution> newExecution() const;
  // On 8.6 a profile serves one execution at a time.
  bool shares() const { return engine_->generation8(); }

  std::shared_ptr<Engine> engine_;
  int profile_;
  std::unique_ptr<LayerTimes> layerTimes_;
  std::unique_ptr<cuda::Stream> stream_;
  std::shared_ptr<cuda::DeviceBlock> activations_;
  // For shapes asked about; on 8.6 also for every call.
  std::shared_ptr<Execution> first_;
  std::mutex firstMutex_;
  std::vector<std::shared_ptr<Execution>> unused_;
  std::vector<std::weak_ptr<Call>> calls_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace trtforge
