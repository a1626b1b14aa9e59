// The CUDA driver API, loaded at run time: the GPU's primary context, memory, streams, events and graphs, each owned by
// one object. TensorRT's own CUDA runtime works in the same primary context, so its addresses and streams are ours and
// ours are its.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "failure.hpp"

namespace trtforge::cuda {

// Handles of the driver are pointers to types it does not show.
using StreamHandle = struct StreamType*;
using EventHandle = struct EventType*;
using GraphHandle = struct GraphType*;
using GraphExecHandle = struct GraphExecType*;
using ContextHandle = struct ContextType*;
using Address = unsigned long long;

constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 2;
constexpr int kDeinitialized = 4;
constexpr int kNoDevice = 100;
constexpr int kNotReady = 600;

// Bits of the scheduling flags of a context: how a thread waits for the GPU.
constexpr unsigned kScheduleMask = 0x07;
constexpr unsigned kScheduleYield = 0x02;
constexpr unsigned kScheduleBlocking = 0x04;

// Every function of the driver that is used. Null only where the comment states so.
struct Driver {
  int (*init)(unsigned);
  int (*deviceGetCount)(int*);
  int (*deviceGet)(int*, int);
  int (*primaryContextRetain)(ContextHandle*, int);
  int (*contextSetCurrent)(ContextHandle);
  int (*contextGetFlags)(unsigned*);
  int (*memoryInfo)(std::size_t* free, std::size_t* total);
  int (*memoryAllocate)(Address*, std::size_t);
  int (*memoryFree)(Address);
  int (*memorySet8)(Address, unsigned char, std::size_t);
  int (*hostAllocate)(void**, std::size_t, unsigned flags);
  int (*hostFree)(void*);
  int (*hostDeviceAddress)(Address*, void*, unsigned flags);
  int (*copyToDevice)(Address, const void*, std::size_t, StreamHandle);
  int (*copyToHost)(void*, Address, std::size_t, StreamHandle);
  int (*copyOnDevice)(Address to, Address from, std::size_t, StreamHandle);
  int (*streamCreate)(StreamHandle*, unsigned flags);
  int (*streamDestroy)(StreamHandle);
  int (*streamSynchronize)(StreamHandle);
  int (*streamQuery)(StreamHandle);
  int (*streamWaitEvent)(StreamHandle, EventHandle, unsigned flags);
  int (*beginCapture)(StreamHandle, int mode);
  int (*endCapture)(StreamHandle, GraphHandle*);
  int (*graphInstantiate)(GraphExecHandle*, GraphHandle, unsigned long long flags);  // null before CUDA 11.4
  int (*graphInstantiateOld)(GraphExecHandle*, GraphHandle, void*, char*,
                             std::size_t);            // for drivers without the other
  int (*graphUpload)(GraphExecHandle, StreamHandle);  // null before CUDA 11.1
  int (*graphLaunch)(GraphExecHandle, StreamHandle);
  int (*graphDestroy)(GraphHandle);
  int (*graphExecDestroy)(GraphExecHandle);
  int (*eventCreate)(EventHandle*, unsigned flags);
  int (*eventDestroy)(EventHandle);
  int (*eventRecord)(EventHandle, StreamHandle);
  int (*eventSynchronize)(EventHandle);
  int (*eventQuery)(EventHandle);
  int (*eventElapsed)(float* ms, EventHandle from, EventHandle to);
  int (*errorText)(int, const char**);
};

// Loads libcuda once and initialises it. Throws TF_GPU_UNAVAILABLE with the reason.
const Driver& driver();

// `out of memory (CUDA error 2)`
std::string textOf(int code);

// Throws TF_RUN_FAILED: `WHAT failed: TEXT (CUDA error N).`
void check(int code, const char* what);

// After the process began to end no call may reach the driver: destructors then leave what they hold to the system.
bool ending();
// From now on.
void endNow();

// One GPU and its primary context, which is retained once and never released: TensorRT's runtime lives in it.
class Device {
 public:
  // By its ordinal among the visible GPUs. Throws TF_GPU_UNAVAILABLE.
  static const Device& at(int ordinal);

  // For the calling thread; every function below needs it.
  void makeCurrent() const {
    if (const int code = driver_.contextSetCurrent(context_); code != kSuccess)
      check(code, "Making the GPU's context current");
  }
  // The same where nothing can be thrown.
  void makeCurrentQuietly() const noexcept { driver_.contextSetCurrent(context_); }
  struct Memory {
    std::size_t free = 0, total = 0;
  };
  // Of the whole GPU.
  Memory memory() const;
  // TF_GPU_MEMORY with `neededBytes`, `freeBytes` and `totalBytes` in its details. `what` is a noun: `activation memory
  // of a context`.
  Failure outOfMemory(const std::string& what, std::size_t needed) const;
  int ordinal() const { return ordinal_; }
  const Driver& api() const { return driver_; }
  // How threads wait (kSchedule…); 0 lets the driver choose.
  unsigned schedule() const;

 private:
  Device(const Driver& driver, int ordinal);

  const Driver& driver_;
  int ordinal_;
  int device_ = 0;
  ContextHandle context_ = nullptr;
};

// Device memory; at least one byte, so that an empty tensor has an address too. Aligned to 256 bytes.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  // Throws TF_GPU_MEMORY.
  DeviceBlock(const Device& device, std::size_t bytes, const std::string& what);
  DeviceBlock(DeviceBlock&& other) noexcept { swap(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    DeviceBlock taken(std::move(other));
    swap(taken);
    return *this;
  }
  DeviceBlock(const DeviceBlock&) = delete;
  ~DeviceBlock();

  void* get() const { return reinterpret_cast<void*>(address_); }
  Address address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  // Of a block that holds memory.
  const Device& device() const { return *device_; }

 private:
  void swap(DeviceBlock& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }
  const Device* device_ = nullptr;
  Address address_ = 0;
  std::size_t bytes_ = 0;
};

// Pinned host memory, known to every context; at least one byte.
class HostBlock {
 public:
  HostBlock() = default;
  // Throws TF_GPU_MEMORY.
  HostBlock(const Device& device, std::size_t bytes, const std::string& what);
  HostBlock(HostBlock&& other) noexcept { swap(other); }
  HostBlock& operator=(HostBlock&& other) noexcept {
    HostBlock taken(std::move(other));
    swap(taken);
    return *this;
  }
  HostBlock(const HostBlock&) = delete;
  ~HostBlock();

  void* get() const { return memory_; }
  // Where the GPU finds it; 0 where it does not.
  Address deviceAddress() const;
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(HostBlock& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
  }
  const Device* device_ = nullptr;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// A stream that never waits for the default one (TensorRT synchronises the whole device on that). The device must be
// current where it is made.
class Stream {
 public:
  explicit Stream(const Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamHandle get() const { return handle_; }
  const Device& device() const { return device_; }
  // Until all that was enqueued is done. Throws TF_RUN_FAILED.
  void synchronize() const;
  // Whether all that was enqueued is done, or failed.
  bool idle() const { return device_.api().streamQuery(handle_) != kNotReady; }
  void copyToDevice(Address to, const void* from, std::size_t bytes) const;
  void copyToHost(void* to, Address from, std::size_t bytes) const;
  void copyOnDevice(Address to, Address from, std::size_t bytes) const;

 private:
  const Device& device_;
  StreamHandle handle_ = nullptr;
  // Whether to poll for a while before a wait that would put the thread to sleep.
  bool polls_ = false;
};

class Event {
 public:
  explicit Event(const Device& device, bool timing);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  EventHandle get() const { return handle_; }
  void record(const Stream& stream) const {
    check(device_.api().eventRecord(handle_, stream.get()), "Recording an event");
  }
  void synchronize() const { check(device_.api().eventSynchronize(handle_), "Waiting for the GPU"); }
  // Both events need timing and must be done.
  double msSince(const Event& earlier) const;

 private:
  const Device& device_;
  EventHandle handle_ = nullptr;
};

// An instantiated CUDA graph.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept : device_(other.device_), handle_(other.handle_) { other.handle_ = nullptr; }
  Graph& operator=(Graph&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  Graph(const Graph&) = delete;
  ~Graph();

  explicit operator bool() const { return handle_ != nullptr; }
  void launch(const Stream& stream) const {
    if (const int code = device_->api().graphLaunch(handle_, stream.get()); code != kSuccess)
      check(code, "Launching the CUDA graph");
  }

  // Runs `enqueue` (a function that returns false, or throws a Failure, where it cannot) while the stream captures in
  // thread-local mode, so that other threads may allocate meanwhile. Empty graph and a sentence in `refusal` where it
  // fails; the stream is usable again then.
  template <class Enqueue>
  static Graph capture(const Stream& stream, Enqueue enqueue, std::string& refusal);

 private:
  Graph(const Device& device, GraphExecHandle handle) : device_(&device), handle_(handle) {}
  // Ends the capture; instantiates what it gave unless `enqueued` is false.
  static Graph finish(const Stream& stream, bool enqueued, std::string& refusal);
  static bool begin(const Stream& stream, std::string& refusal);

  const Device* device_ = nullptr;
  GraphExecHandle handle_ = nullptr;
};

template <class Enqueue>
Graph Graph::capture(const Stream& stream, Enqueue enqueue, std::string& refusal) {
  if (!begin(stream, refusal)) return Graph();
  bool enqueued = false;
  try {
    enqueued = enqueue();
  } catch (const Failure& failure) {
    refusal = failure.message;
  }
  return finish(stream, enqueued, refusal);
}

}  // namespace trtforge::cuda
