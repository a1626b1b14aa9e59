// Fixed shapes and buffers of an engine, for many runs, with a CUDA graph where one can be captured.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "block_pool.hpp"
#include "context.hpp"
#include "output_allocator.hpp"
#include "pace.hpp"

namespace trtforge {

// What the library asks of every address of a tensor.
constexpr std::size_t kAddressAlignment = 256;

// Where a tensor of a call lies. Without memory: the call owns a pinned buffer and a device buffer.
struct BindingRequest {
  std::string name;
  std::shared_ptr<cuda::DeviceBlock> memory;
  std::size_t offset = 0;
};

// How small tensors of the call's own reach the GPU: copied, used by it in pinned memory, or as a few runs of both show
// to be faster.
enum class SmallTensors { kCopied, kMapped, kMeasured };

struct CallRequest {
  std::vector<InputShape> shapes;
  std::vector<BindingRequest> bindings;
  bool graph = false;
  SmallTensors small = SmallTensors::kMeasured;
};

// A tensor of a call.
struct Slotted {
  std::string name;
  bool input = false;
  bool hostTensor = false;  // a shape output: the library writes the pinned buffer itself
  std::size_t bytes = 0;
  std::shared_ptr<cuda::HostBlock> host;      // null for device bindings and data-dependent outputs
  std::shared_ptr<cuda::DeviceBlock> device;  // null for host tensors, and data-dependent outputs of the call's own
  std::size_t offset = 0;
  bool callerOwns = false;
  cuda::Address mapped = 0;                    // of the pinned memory on the GPU, where the engine uses it in place
  std::unique_ptr<OutputAllocator> allocator;  // data-dependent outputs only

  cuda::Address address() const { return device->address() + offset; }
  // Copied between pinned memory and the GPU in every run.
  bool copied() const { return host != nullptr && device != nullptr && mapped == 0; }
};

// Bytes outside pinned memory that a run reads into, or writes from, the slot of this number.
struct HostView {
  int slot = 0;
  void* data = nullptr;
};

class Call {
 public:
  // Throws TF_SESSION_INPUT, TF_SESSION_BINDING, TF_GPU_MEMORY, TF_RUN_FAILED. Memory of `device` bindings is as it was
  // afterwards.
  static std::shared_ptr<Call> prepare(const std::shared_ptr<Context>& context, const CallRequest& request);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool hasGraph() const { return fullGraphed_; }
  const std::string& graphRefusal() const { return graphRefusal_; }
  // Small tensors are used in pinned memory.
  bool mapsSmall() const;
  const std::vector<OutputShape>& outputs() const { return outputs_; }
  const std::vector<Slotted>& slots() const { return slots_; }
  const std::shared_ptr<Context>& context() const { return context_; }

  // A run whose inputs are in pinned memory, large ones on their way to the GPU.
  struct Begun {
    Pace::Clock::time_point started;
    bool follows = false;    // another one by less than a moment
    std::size_t staged = 0;  // bytes that several threads copy, in and out
  };
  // `inputs` are copied in first, `outputs` copied out at the end. Both throw TF_RUN_FAILED, TF_GPU_MEMORY,
  // TF_SESSION_CLOSED.
  void run(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs);
  // The first half of a run, nothing where the context is busy: reads the inputs for the last time. The caller that
  // began must finish.
  std::optional<Begun> tryBegin(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs);
  void finish(const Begun& begun, const std::vector<HostView>& outputs);
  // Bytes of a data-dependent output of the last run. Throws TF_SESSION_INPUT.
  std::vector<char> readOutput(const std::string& name);
  // With the context's mutex held: the next run sets shapes and addresses, and lets go of the graphs.
  void rebind();
  // Lets go of everything, with the context's mutex held.
  void release();
  // The same from outside.
  void close();

 private:
  Call(std::shared_ptr<Context> context, const CallRequest& request);
  void addSlots();
  void addSlot(const EngineTensor& tensor, const std::vector<std::int64_t>* shape, std::size_t bytes);
  const BindingRequest& bindingOf(const std::string& name) const;
  void rehearse();
  // Work that runs the engine; afterwards outputs in the caller's memory are as they were.
  void keepingOutputs(const std::function<void()>& work);
  std::string whyNoGraph() const;
  void captureFull();
  void prepareGraph();
  // All of call_small.cpp.
  void placeSmall();
  void mapSmall(bool mapped);
  Pace::Clock::duration bestRun();

  // All with the context's mutex held and the device current.
  void open();
  // True where shapes or addresses had to be set: the next enqueue then does deferred work and cannot be captured.
  bool bind();
  void enqueue();
  void copyIn();
  void copyOut();
  void launch();
  // All after the inputs, where those were staged.
  void launchRest(const std::vector<HostView>& outputs);
  Begun begin(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs);
  void end(const Begun& begun, const std::vector<HostView>& outputs);
  void awaitEnd(Pace::Clock::time_point started, std::size_t staged);

  // A part of a tensor that is copied between ordinary and pinned memory at one go.
  struct Piece {
    const Slotted* slot;
    char* view;
    std::size_t from, bytes;
    char* pinned() const { return static_cast<char*>(slot->host->get()) + from; }
  };
  const Slotted& slot(const HostView& view) const { return slots_[static_cast<std::size_t>(view.slot)]; }
  // Copied by several threads, and piece by piece.
  bool isLarge(const HostView& view) const;
  bool isStaged(const Slotted& slot, const std::vector<HostView>& views) const;
  bool outputsAreSmall() const;
  std::size_t bytesStaged(const std::vector<HostView>& views) const;
  static std::size_t helpersFor(std::size_t bytes);
  std::vector<Piece> piecesOf(const std::vector<HostView>& views, std::size_t size) const;
  void stageIn(const std::vector<HostView>& views);
  void enqueueOut(const std::vector<HostView>& views);
  void stageOut();
  Failure explained(const Failure& failure) const;

  const std::shared_ptr<Context> context_;
  const CallRequest request_;
  // The engine's, which may go before the call.
  std::string label_;
  std::vector<OutputShape> outputs_;
  std::vector<Slotted> slots_;
  std::shared_ptr<Execution> execution_;
  cuda::Graph full_, rest_;
  bool fullGraphed_ = false;
  bool profiled_ = false;
  std::string graphRefusal_;
  std::vector<Piece> outPieces_;
  std::vector<std::unique_ptr<cuda::Event>> outDone_;
  Pace pace_;
  Pace::Clock::time_point ended_;
};

}  // namespace trtforge
