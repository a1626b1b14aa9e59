// One stream of a measurement: a context of its own, its buffers, and the CUDA graph where one was asked for.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda.hpp"
#include "execution.hpp"
#include "measure.hpp"
#include "measure_loop.hpp"
#include "output_allocator.hpp"

namespace trtforge {

class EngineStream : public MeasuredStream {
 public:
  // Allocates, binds, copies inputs in, runs once, and captures where asked. The device must be current.
  EngineStream(const std::shared_ptr<Engine>& engine, const MeasureRequest& request);
  ~EngineStream() override;

  // Nothing enqueued from now on begins before `start`.
  void startAfter(const TimedEvent& start) const;
  void enqueue(const EventRing& events, Sample& sample) override;
  void wait(const EventRing& events) override;

  bool graph() const { return static_cast<bool>(graph_); }
  const std::string& graphRefusal() const { return refusal_; }

 private:
  struct Binding {
    const EngineTensor* tensor;
    std::size_t bytes;
    cuda::DeviceBlock device;
    std::unique_ptr<OutputAllocator> allocator;  // for an output whose shape depends on the data, in place of `device`
    std::optional<cuda::HostBlock> pinned;       // where bytes travel in every inference

    cuda::Address address() const {
      return allocator == nullptr ? device.address() : reinterpret_cast<cuda::Address>(allocator->memory());
    }
  };
  void bindInput(const EngineTensor& tensor, const MeasureRequest& request);
  void bindOutput(const EngineTensor& tensor, const OutputShape& output);
  // After the first run, which shows how large the outputs are that depend on the data.
  void pinOutputs();
  void copyIn() const;
  void copyOut() const;

  const bool transfers_;
  const cuda::Device& device_;
  // Destroyed from the last line up: the context before its memory, all before the streams.
  cuda::Stream input_;
  cuda::Stream compute_;
  cuda::Stream output_;
  cuda::DeviceBlock activations_;
  std::vector<Binding> bindings_;
  std::vector<std::vector<char>> hostOutputs_;
  Execution execution_;
  cuda::Graph graph_;
  std::string refusal_;
};

}  // namespace trtforge
