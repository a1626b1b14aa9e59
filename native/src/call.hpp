// Fixed shapes and buffers of an engine, for many runs, with a CUDA graph where one can be captured.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "block_pool.hpp"
#include "context.hpp"
#include "output_allocator.hpp"

namespace trtforge {

// Where a tensor of a call lies. Without memory: the call owns a pinned buffer and a device buffer.
struct BindingRequest {
  std::string name;
  std::shared_ptr<cuda::DeviceBlock> memory;
  std::size_t offset = 0;
};

struct CallRequest {
  std::vector<InputShape> shapes;
  std::vector<BindingRequest> bindings;
  bool graph = false;
};

// A tensor of a call.
struct Slotted {
  std::string name;
  bool input = false;
  bool hostTensor = false;  // a shape output: the library writes the pinned buffer itself
  std::size_t bytes = 0;
  std::shared_ptr<cuda::HostBlock> host;      // null for device bindings and data-dependent outputs
  std::shared_ptr<cuda::DeviceBlock> device;  // null for host tensors and data-dependent outputs of the call's own
  std::size_t offset = 0;
  bool callerOwns = false;
  std::unique_ptr<OutputAllocator> allocator;  // data-dependent outputs only

  cuda::Address address() const { return device->address() + offset; }
  // Copied between pinned memory and the GPU in every run.
  bool copied() const { return host != nullptr && device != nullptr; }
};

// Bytes outside pinned memory that a run reads into, or writes from, the slot of this number.
struct HostView {
  int slot = 0;
  void* data = nullptr;
};

class Call {
 public:
  // Throws TF_SESSION_INPUT, TF_SESSION_BINDING, TF_GPU_MEMORY, TF_RUN_FAILED. Memory of `device` bindings is as it was afterwards.
  static std::shared_ptr<Call> prepare(const std::shared_ptr<Context>& context, const CallRequest& request);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool hasGraph() const { return fullGraphed_; }
  const std::string& graphRefusal() const { return graphRefusal_; }
  const std::vector<OutputShape>& outputs() const { return outputs_; }
  const std::vector<Slotted>& slots() const { return slots_; }
  const std::shared_ptr<Context>& context() const { return context_; }

  // With nothing to copy from or to ordinary memory. Throws TF_RUN_FAILED, TF_GPU_MEMORY, TF_SESSION_CLOSED.
  void run();
  // `inputs` are copied in first, `outputs` copied out at the end.
  void run(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs);
  // Bytes of a data-dependent output of the last run. Throws TF_SESSION_INPUT.
  std::vector<char> readOutput(const std::string& name);
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
  std::string whyNoGraph() const;
  void captureFull();

  // All with the context's mutex held and the device current.
  void open();
  // True where shapes or addresses had to be set: the next enqueue then does deferred work and cannot be captured.
  bool bind();
  void enqueue();
  void copyIn();
  void copyOut();
  void launch();
  void launchCompute();
  void stageIn(const std::vector<HostView>& views);
  void stageOut(const std::vector<HostView>& views);
  Failure explained(const Failure& failure) const;

  const std::shared_ptr<Context> context_;
  const CallRequest request_;
  std::vector<OutputShape> outputs_;
  std::vector<Slotted> slots_;
  std::shared_ptr<Execution> execution_;
  cuda::Graph full_, compute_;
  bool fullGraphed_ = false;
  bool profiled_ = false;
  std::string graphRefusal_;
  std::vector<std::unique_ptr<cuda::Event>> chunkDone_;
};

}  // namespace trtforge
