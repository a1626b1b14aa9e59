// A fake for libcuda: GPUs as FAKE_GPUS and CUDA_VISIBLE_DEVICES say, one unless told, or none (FAKE_GPU=none, broken, or full of others' work).
// Who mixes GPUs is told what CUDA tells: a kernel on a stream that is not of the current context, or an event recorded on a stream of another GPU, is an invalid
// handle (400); a kernel that touches memory of another GPU an illegal address (700), told when it is waited for; without a current context there is nothing (201).
// FAKE_HELD_UP=n:us holds the host up for so long on paper (FAKE_CLOCK) before it launches kernel n, counted from 1. FAKE_COPY_US is how long a copy takes, FAKE_BUS_US how much longer a kernel takes for each tensor in pinned memory.
#include <cstdio>

#include "cuda-memory.hpp"
#include "cuda-work.hpp"

namespace {

using namespace fake;

// Appends a line to the file the test reads.
void note(const char* line) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (std::FILE* file = std::fopen(setting("FAKE_CALLS", "/dev/null"), "a")) {
    std::fprintf(file, "%s\n", line);
    std::fclose(file);
  }
}

double copyUs() {
  static const double us = std::atof(setting("FAKE_COPY_US", "0"));
  return us;
}

// A copy may be enqueued whichever GPU is current; its device memory must be of the stream's.
int copy(Stream* stream, std::size_t bytes, Address device, std::function<void()> action) {
  if (current == nullptr) return kInvalidContext;
  if (const int refusal = reach(stream->gpu, device, bytes); refusal != 0) return refusal;
  return enqueue(stream, copyUs(), std::move(action));
}

void holdUp() {
  static std::atomic<int> launches{0};
  int launch = 0;
  double us = 0;
  if (std::sscanf(setting("FAKE_HELD_UP", ""), "%d:%lf", &launch, &us) == 2 && ++launches == launch) putForward(nowUs() + us);
}

// Work that is launched must find its GPU current.
int launchable(const Stream* stream) { return current == nullptr ? kInvalidContext : current == stream->gpu ? 0 : kInvalidHandle; }

}  // namespace

extern "C" {

// CUDA does not start where no GPU is shown.
int cuInit(unsigned) { return gpuRequested("broken") ? 999 : gpus().empty() ? kNoDevice : 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = gpuRequested("none") ? 0 : static_cast<int>(gpus().size()), 0; }
int cuDeviceGet(int* device, int index) { return *device = index, gpuAt(index) == nullptr ? kInvalidDevice : 0; }
int cuDeviceGetName(char* name, int length, int device) {
  if (gpuAt(device) == nullptr) return kInvalidDevice;
  return std::strncpy(name, gpuName(gpuAt(device)->index).c_str(), static_cast<std::size_t>(length)), 0;
}
int cuDeviceGetUuid(unsigned char* bytes, int device) { return gpuAt(device) == nullptr ? kInvalidDevice : (uuidBytes(gpuAt(device)->index, bytes), 0); }
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) { return gpuAt(device) == nullptr ? kInvalidDevice : (*bytes = gpuAt(device)->totalBytes(), 0); }
int cuDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132, 0; }
int cuGetErrorString(int code, const char** text) {
  switch (code) {
    case kOutOfMemory: return *text = "out of memory", 0;
    case kNoDevice: return *text = "no CUDA-capable device is detected", 0;
    case kInvalidContext: return *text = "invalid device context", 0;
    case kInvalidHandle: return *text = "invalid resource handle", 0;
    case kIllegalAddress: return *text = "an illegal memory access was encountered", 0;
    case kCaptureUnsupported: return *text = "operation not permitted when stream is capturing", 0;
    default: return *text = "unknown error", 0;
  }
}

int cuDevicePrimaryCtxRetain(Gpu** context, int device) {
  if (gpuAt(device) == nullptr) return kInvalidDevice;
  return gpuRequested("full") ? kOutOfMemory : (*context = gpuAt(device), 0);
}
int cuCtxGetDevice(int* device) {
  for (*device = 0; current != nullptr && gpuAt(*device) != current;) ++*device;
  return current == nullptr ? kInvalidContext : 0;
}
int cuCtxSetCurrent(Gpu* context) { return current = context, 0; }
// Threads wait as the driver chooses.
int cuCtxGetFlags(unsigned* flags) { return current == nullptr ? kInvalidContext : (*flags = 0, 0); }

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (current == nullptr) return kInvalidContext;
  std::lock_guard<std::mutex> lock(memoryMutex);
  *total = current->totalBytes();
  return *free = *total - std::min(*total, current->usedBytes.load()), 0;
}
int cuMemAlloc_v2(Address* address, std::size_t bytes) { return current == nullptr ? kInvalidContext : allocate(current, address, bytes); }
int cuMemFree_v2(Address address) { return current == nullptr ? kInvalidContext : release(current, address); }
int cuMemsetD8_v2(Address address, unsigned char value, std::size_t bytes) {
  if (current == nullptr) return kInvalidContext;
  if (const int refusal = reach(current, address, bytes); refusal != 0) return refusal;
  return std::memset(reinterpret_cast<void*>(address), value, bytes), 0;
}
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) { return current == nullptr ? kInvalidContext : pin(current, memory, bytes); }
int cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned) {
  return current == nullptr ? kInvalidContext : (*address = reinterpret_cast<Address>(memory), 0);
}
int cuMemFreeHost(void* memory) { return current == nullptr ? kInvalidContext : unpin(memory); }
int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream* stream) {
  return copy(stream, bytes, to, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream* stream) {
  return copy(stream, bytes, from, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Stream* stream) {
  if (const int refusal = reach(stream->gpu, to, bytes); refusal != 0) return refusal;
  return copy(stream, bytes, from, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}

int cuStreamCreate(Stream** stream, unsigned) { return current == nullptr ? kInvalidContext : (*stream = new Stream(current), 0); }
int cuStreamDestroy_v2(Stream* stream) { return current == nullptr ? kInvalidContext : (delete stream, 0); }
// No stream is the current GPU's own, on which nothing takes time.
int cuStreamSynchronize(Stream* stream) {
  if (stream == nullptr) return current == nullptr ? kInvalidContext : waitUntil(current, 0);
  return refusedByCapture(stream) ? kCaptureUnsupported : waitUntil(stream->gpu, stream->freeAtUs);
}
int cuStreamQuery(Stream* stream) { return refusedByCapture(stream) ? kCaptureUnsupported : stateAt(stream->gpu, stream->freeAtUs); }
int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  if (stream->capture == nullptr) stream->freeAtUs = std::max(stream->freeAtUs, event->atUs);
  return 0;
}
int cuStreamBeginCapture_v2(Stream* stream, int) {
  stream->capture = new Graph(stream->gpu);
  stream->invalidated = false;
  return 0;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  *graph = stream->capture;
  stream->capture = nullptr;
  if (!stream->invalidated) return 0;
  delete *graph;
  return *graph = nullptr, kCaptureInvalidated;
}
int cuGraphInstantiateWithFlags(Graph** ready, Graph* graph, unsigned long long) { return *ready = new Graph(*graph), 0; }
int cuGraphUpload(Graph* graph, Stream* stream) { return graph->gpu == stream->gpu ? 0 : kInvalidHandle; }
int cuGraphLaunch(Graph* graph, Stream* stream) {
  if (const int refusal = launchable(stream); refusal != 0) return refusal;
  if (graph->gpu != stream->gpu) return kInvalidHandle;
  for (const Work& work : graph->work)
    if (const int refusal = enqueue(stream, work.us, work.action); refusal != 0) return refusal;
  return 0;
}
int cuGraphDestroy(Graph* graph) { return delete graph, 0; }
int cuGraphExecDestroy(Graph* graph) { return delete graph, 0; }

int cuEventCreate(Event** event, unsigned flags) {
  if (current == nullptr) return kInvalidContext;
  note(flags == 0 ? "event that spins" : flags == 1 ? "event that blocks" : "event without time");
  return *event = new Event(current, flags), 0;
}
int cuEventDestroy_v2(Event* event) { return current == nullptr ? kInvalidContext : (delete event, 0); }
int cuEventRecord(Event* event, Stream* stream) {
  if (event->gpu != stream->gpu) return kInvalidHandle;
  if (stream->capture == nullptr) event->atUs = std::max(stream->freeAtUs, nowUs());
  return 0;
}
int cuEventSynchronize(Event* event) { return waitUntil(event->gpu, event->atUs); }
int cuEventQuery(Event* event) { return stateAt(event->gpu, event->atUs); }
int cuEventElapsedTime(float* ms, Event* from, Event* to) {
  constexpr unsigned kDisableTiming = 2;
  if (from->gpu != to->gpu || ((from->flags | to->flags) & kDisableTiming) != 0) return kInvalidHandle;
  if (nowUs() < std::max(from->atUs, to->atUs)) return kNotReady;
  return *ms = static_cast<float>((to->atUs - from->atUs) / 1000), 0;
}

// For the fake engines: what they keep on the GPU that is current; null where none is. Given back only where it still is.
void* fakeHold() { return current == nullptr ? nullptr : new Held(current); }
void fakeGiveBack(void* held) {
  if (current == static_cast<Held*>(held)->gpu) delete static_cast<Held*>(held);
}

// For the fake engines: whether a kernel on the stream may touch this memory.
bool fakeTouches(const Stream* stream, const void* memory) { return touches(stream->gpu, memory); }

// For the fake engines: how much longer a kernel takes because of where a tensor lies.
double fakeBusUs(const void* tensor) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  return pinned.count(reinterpret_cast<Address>(tensor)) == 0 ? 0 : std::atof(setting("FAKE_BUS_US", "0"));
}

// For the fake engines: a kernel, with an argument that is copied as a GPU copies a kernel's parameters. One that is astray does nothing but damage.
int fakeLaunchCopy(Stream* stream, double us, void (*kernel)(void*), const void* argument, std::size_t bytes, bool astray) {
  if (const int refusal = launchable(stream); refusal != 0) return refusal;
  if (astray) return enqueue(stream, us, [gpu = stream->gpu] { gpu->astray = true; });
  holdUp();
  const char* first = static_cast<const char*>(argument);
  std::vector<char> copied(first, first + bytes);
  return enqueue(stream, us, [kernel, copied]() mutable { kernel(copied.data()); });
}

}
