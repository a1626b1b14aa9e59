#include "cuda.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "gpus.hpp"
#include "library.hpp"

namespace trtforge::cuda {

namespace {

constexpr unsigned kNonBlocking = 1;
constexpr unsigned kPortable = 1, kDeviceMapped = 2;
constexpr unsigned kDisableTiming = 2;
constexpr int kThreadLocalCapture = 1;
constexpr auto kPollFor = std::chrono::microseconds(200);

std::atomic<bool> processEnds{false};

// `1.50 GiB`
std::string shownBytes(std::size_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double amount = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; amount >= 1024 && unit < 3; ++unit) amount /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", amount, kUnits[unit]);
  return text;
}

template <class Function>
void find(const SharedLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.find(name));
}

template <class Function>
void need(const SharedLibrary& library, const char* name, Function& function) {
  function = library.symbol<Function>(name);
}

Driver load(const SharedLibrary& library) {
  Driver all = {};
  need(library, "cuInit", all.init);
  need(library, "cuDeviceGetCount", all.deviceGetCount);
  need(library, "cuDeviceGet", all.deviceGet);
  need(library, "cuDevicePrimaryCtxRetain", all.primaryContextRetain);
  need(library, "cuCtxSetCurrent", all.contextSetCurrent);
  need(library, "cuCtxGetFlags", all.contextGetFlags);
  need(library, "cuMemGetInfo_v2", all.memoryInfo);
  need(library, "cuMemAlloc_v2", all.memoryAllocate);
  need(library, "cuMemFree_v2", all.memoryFree);
  need(library, "cuMemsetD8_v2", all.memorySet8);
  need(library, "cuMemHostAlloc", all.hostAllocate);
  need(library, "cuMemFreeHost", all.hostFree);
  need(library, "cuMemHostGetDevicePointer_v2", all.hostDeviceAddress);
  need(library, "cuMemcpyHtoDAsync_v2", all.copyToDevice);
  need(library, "cuMemcpyDtoHAsync_v2", all.copyToHost);
  need(library, "cuMemcpyDtoDAsync_v2", all.copyOnDevice);
  need(library, "cuStreamCreate", all.streamCreate);
  need(library, "cuStreamDestroy_v2", all.streamDestroy);
  need(library, "cuStreamSynchronize", all.streamSynchronize);
  need(library, "cuStreamQuery", all.streamQuery);
  need(library, "cuStreamWaitEvent", all.streamWaitEvent);
  need(library, "cuStreamBeginCapture_v2", all.beginCapture);
  need(library, "cuStreamEndCapture", all.endCapture);
  find(library, "cuGraphInstantiateWithFlags", all.graphInstantiate);
  if (all.graphInstantiate == nullptr) need(library, "cuGraphInstantiate_v2", all.graphInstantiateOld);
  find(library, "cuGraphUpload", all.graphUpload);
  need(library, "cuGraphLaunch", all.graphLaunch);
  need(library, "cuGraphDestroy", all.graphDestroy);
  need(library, "cuGraphExecDestroy", all.graphExecDestroy);
  need(library, "cuEventCreate", all.eventCreate);
  need(library, "cuEventDestroy_v2", all.eventDestroy);
  need(library, "cuEventRecord", all.eventRecord);
  need(library, "cuEventSynchronize", all.eventSynchronize);
  need(library, "cuEventQuery", all.eventQuery);
  need(library, "cuEventElapsedTime", all.eventElapsed);
  need(library, "cuGetErrorString", all.errorText);
  return all;
}

[[noreturn]] void unavailable(const std::string& why) {
  throw Failure("TF_GPU_UNAVAILABLE", "Engines run on an NVIDIA GPU, and " + why);
}

const Driver& loadedDriver() {
  static const Driver* loaded = [] {
    try {
      return new Driver(load(SharedLibrary::open("libcuda.so.1")));
    } catch (const Failure& failure) {
      unavailable("there is no NVIDIA driver that can run them: " + failure.message);
    }
  }();
  return *loaded;
}

}  // namespace

const Driver& driver() {
  const Driver& all = loadedDriver();
  const int code = all.init(0);
  if (code == kNoDevice) unavailable(noGpuShown());
  if (code != kSuccess) unavailable("the CUDA driver does not start: " + textOf(code) + ".");
  return all;
}

std::string textOf(int code) {
  const char* text = nullptr;
  loadedDriver().errorText(code, &text);
  const std::string number = "CUDA error " + std::to_string(code);
  return text == nullptr ? number : std::string(text) + " (" + number + ")";
}

void check(int code, const char* what) {
  if (code != kSuccess) throw Failure("TF_RUN_FAILED", std::string(what) + " failed: " + textOf(code) + ".");
}

bool ending() { return processEnds.load(); }
void endNow() { processEnds = true; }

const Device& Device::at(int ordinal) {
  static std::mutex mutex;
  static auto* devices = new std::map<int, std::unique_ptr<const Device>>;
  std::lock_guard<std::mutex> lock(mutex);
  if (const auto known = devices->find(ordinal); known != devices->end()) return *known->second;
  const Driver& all = driver();
  int count = 0;
  if (const int code = all.deviceGetCount(&count); code != kSuccess)
    unavailable("the CUDA driver cannot count its GPUs: " + textOf(code) + ".");
  if (count == 0) unavailable(noGpuShown());
  if (ordinal < 0 || ordinal >= count)
    unavailable("there is no GPU " + std::to_string(ordinal) + ": the CUDA driver shows " + std::to_string(count) +
                ", counted from 0.");
  // Registered after the driver's own, and so called before it: from then on the driver is left alone.
  if (devices->empty()) std::atexit(endNow);
  return *devices->emplace(ordinal, std::unique_ptr<const Device>(new Device(all, ordinal))).first->second;
}

Device::Device(const Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {
  if (const int code = driver_.deviceGet(&device_, ordinal); code != kSuccess)
    unavailable("GPU " + std::to_string(ordinal) + " cannot be opened: " + textOf(code) + ".");
  const int code = driver_.primaryContextRetain(&context_, device_);
  if (code == kOutOfMemory)
    throw Failure("TF_GPU_MEMORY",
                  "GPU " + std::to_string(ordinal) +
                      " has no room left, not even for a CUDA context: other processes use its memory.");
  if (code != kSuccess)
    unavailable("a context on GPU " + std::to_string(ordinal) + " cannot be made: " + textOf(code) + ".");
}

Device::Memory Device::memory() const {
  Memory memory;
  makeCurrent();
  check(driver_.memoryInfo(&memory.free, &memory.total), "Asking for the GPU's free memory");
  return memory;
}

Failure Device::outOfMemory(const std::string& what, std::size_t needed) const {
  Memory now;
  driver_.memoryInfo(&now.free, &now.total);
  Failure failure("TF_GPU_MEMORY", "GPU " + std::to_string(ordinal_) + " has no room for the " + what + ": " +
                                       shownBytes(needed) + " needed, " + shownBytes(now.free) + " of " +
                                       shownBytes(now.total) + " free.");
  failure.numbers = {{"neededBytes", static_cast<double>(needed)},
                     {"freeBytes", static_cast<double>(now.free)},
                     {"totalBytes", static_cast<double>(now.total)}};
  return failure;
}

unsigned Device::schedule() const {
  unsigned flags = 0;
  makeCurrent();
  check(driver_.contextGetFlags(&flags), "Asking how threads wait for the GPU");
  return flags & kScheduleMask;
}

DeviceBlock::DeviceBlock(const Device& device, std::size_t bytes, const std::string& what)
    : device_(&device), bytes_(bytes) {
  device.makeCurrent();
  const std::size_t room = bytes == 0 ? 1 : bytes;
  const int code = device.api().memoryAllocate(&address_, room);
  if (code == kOutOfMemory) throw device.outOfMemory(what, room);
  check(code, "Allocating GPU memory");
}

DeviceBlock::~DeviceBlock() {
  if (address_ == 0 || ending()) return;
  device_->makeCurrentQuietly();
  device_->api().memoryFree(address_);
}

HostBlock::HostBlock(const Device& device, std::size_t bytes, const std::string& what)
    : device_(&device), bytes_(bytes) {
  device.makeCurrent();
  const std::size_t room = bytes == 0 ? 1 : bytes;
  const int code = device.api().hostAllocate(&memory_, room, kPortable | kDeviceMapped);
  if (code == kOutOfMemory)
    throw Failure("TF_GPU_MEMORY",
                  "This machine cannot pin " + shownBytes(room) + " of host memory for the " + what + ".");
  check(code, "Allocating pinned memory");
}

HostBlock::~HostBlock() {
  if (memory_ == nullptr || ending()) return;
  device_->makeCurrentQuietly();
  device_->api().hostFree(memory_);
}

Address HostBlock::deviceAddress() const {
  Address address = 0;
  return device_->api().hostDeviceAddress(&address, memory_, 0) == kSuccess ? address : 0;
}

Stream::Stream(const Device& device) : device_(device) {
  const unsigned schedule = device.schedule();
  polls_ = schedule == kScheduleYield || schedule == kScheduleBlocking;
  check(device.api().streamCreate(&handle_, kNonBlocking), "Making a stream");
}

Stream::~Stream() {
  if (handle_ != nullptr && !ending()) device_.api().streamDestroy(handle_);
}

void Stream::synchronize() const {
  const Driver& api = device_.api();
  if (polls_) {
    const auto until = std::chrono::steady_clock::now() + kPollFor;
    do {
      const int code = api.streamQuery(handle_);
      if (code == kSuccess) return;
      if (code != kNotReady) check(code, "The GPU's work");
    } while (std::chrono::steady_clock::now() < until);
  }
  if (const int code = api.streamSynchronize(handle_); code != kSuccess) check(code, "The GPU's work");
}

void Stream::copyToDevice(Address to, const void* from, std::size_t bytes) const {
  if (bytes != 0) check(device_.api().copyToDevice(to, from, bytes, handle_), "Copying to the GPU");
}

void Stream::copyToHost(void* to, Address from, std::size_t bytes) const {
  if (bytes != 0) check(device_.api().copyToHost(to, from, bytes, handle_), "Copying from the GPU");
}

void Stream::copyOnDevice(Address to, Address from, std::size_t bytes) const {
  if (bytes != 0) check(device_.api().copyOnDevice(to, from, bytes, handle_), "Copying on the GPU");
}

Event::Event(const Device& device, bool timing) : device_(device) {
  check(device.api().eventCreate(&handle_, timing ? 0 : kDisableTiming), "Making an event");
}

Event::~Event() {
  if (handle_ != nullptr && !ending()) device_.api().eventDestroy(handle_);
}

double Event::msSince(const Event& earlier) const {
  float ms = 0;
  check(device_.api().eventElapsed(&ms, earlier.handle_, handle_), "Reading an event's time");
  return ms;
}

Graph::~Graph() {
  if (handle_ != nullptr && !ending()) device_->api().graphExecDestroy(handle_);
}

bool Graph::begin(const Stream& stream, std::string& refusal) {
  const int code = stream.device().api().beginCapture(stream.get(), kThreadLocalCapture);
  if (code != kSuccess) refusal = "The stream does not capture: " + textOf(code) + ".";
  return code == kSuccess;
}

Graph Graph::finish(const Stream& stream, bool enqueued, std::string& refusal) {
  const Driver& api = stream.device().api();
  GraphHandle captured = nullptr;
  int code = api.endCapture(stream.get(), &captured);
  GraphExecHandle ready = nullptr;
  if (code == kSuccess && enqueued && captured != nullptr)
    code = api.graphInstantiate != nullptr ? api.graphInstantiate(&ready, captured, 0)
                                           : api.graphInstantiateOld(&ready, captured, nullptr, nullptr, 0);
  if (captured != nullptr) api.graphDestroy(captured);
  if (code == kSuccess && ready != nullptr) {
    if (api.graphUpload != nullptr) api.graphUpload(ready, stream.get());
    return Graph(stream.device(), ready);
  }
  if (refusal.empty())
    refusal = code == kSuccess ? "The engine did not enqueue its work while the stream captured."
                               : "The capture failed: " + textOf(code) + ".";
  return Graph();
}

}  // namespace trtforge::cuda
