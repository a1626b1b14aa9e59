// A stand-in for libcuda: one GPU, or none, as the test wishes (STANDIN_GPU). Device memory is host memory, so the stand-in engines compute on it.
// Work is done when it is enqueued and takes its time on paper: a stream knows when it will be free, an event when it will have happened, and who waits for it
// waits by the clock. STANDIN_COPY_US is how long a copy takes, STANDIN_BUS_US how much longer a kernel takes for each tensor in pinned memory;
// STANDIN_GPU_BYTES how much memory there is, of which STANDIN_GPU=full leaves none; STANDIN_PINNED=none: no memory can be pinned. Every stream, event, graph and piece of pinned memory takes a byte of it, so that one that is left behind shows.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600, kIllegalAddress = 700, kCaptureUnsupported = 900, kCaptureInvalidated = 901;
constexpr unsigned kScheduleMask = 7;
using Address = unsigned long long;

const char* wish(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}
bool wished(const char* what) { return std::strcmp(wish("STANDIN_GPU", ""), what) == 0; }

double nowUs() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::atomic<std::size_t> usedBytes{std::size_t{1} << 30};

struct Held {
  Held() { ++usedBytes; }
  Held(const Held&) : Held() {}
  ~Held() { --usedBytes; }
};

struct Work {
  double us;
  std::function<void()> action;
};

struct Graph : Held {
  std::vector<Work> work;
};

struct Stream : Held {
  double freeAtUs = 0;
  Graph* capture = nullptr;
  bool invalidated = false;
};

struct Event : Held {
  explicit Event(unsigned flags) : flags(flags) {}
  unsigned flags;
  double atUs = 0;
};

std::mutex memoryMutex;
std::map<Address, std::size_t> blocks;
std::set<const void*> pinned;
std::size_t totalBytes() { return std::strtoull(wish("STANDIN_GPU_BYTES", "161061273600"), nullptr, 10); }
unsigned contextFlags = 0;

// STANDIN_ALLOCATION_FAILS: from which allocation on none is to be had, counted from when the wish was made.
bool allocationFails() {
  static int wished = 0, seen = 0;
  const int now = std::atoi(wish("STANDIN_ALLOCATION_FAILS", "0"));
  if (now != wished) wished = now, seen = 0;
  return wished > 0 && ++seen >= wished;
}

std::recursive_mutex workMutex;

// Several threads may copy on one stream.
int enqueue(Stream* stream, double us, std::function<void()> action) {
  std::lock_guard<std::recursive_mutex> lock(workMutex);
  if (stream->capture != nullptr) {
    stream->capture->work.push_back({us, std::move(action)});
    return 0;
  }
  action();
  stream->freeAtUs = std::max(stream->freeAtUs, nowUs()) + us;
  return 0;
}

// STANDIN_FAULT: a kernel has gone astray, which CUDA tells whoever waits.
bool faulty() { return *wish("STANDIN_FAULT", "") != '\0'; }

// Who yields on a busy machine waits for others' time slices, so the last moments are spent here.
int waitUntil(double atUs) {
  if (faulty()) return kIllegalAddress;
  for (double left = atUs - nowUs(); left > 0; left = atUs - nowUs())
    if (left > 300) std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(left - 200));
  return 0;
}

// Appends a line to the file the test reads.
void note(const char* line) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (std::FILE* file = std::fopen(wish("STANDIN_CALLS", "/dev/null"), "a")) {
    std::fprintf(file, "%s\n", line);
    std::fclose(file);
  }
}

double copyUs() {
  static const double us = std::atof(wish("STANDIN_COPY_US", "0"));
  return us;
}

// What a capturing stream may not be asked ends the capture.
bool refusedByCapture(Stream* stream) {
  if (stream->capture == nullptr) return false;
  return stream->invalidated = true;
}

}  // namespace

extern "C" {

// CUDA shows no GPU, and does not start, where it is told to see none.
int cuInit(unsigned) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return wished("broken") ? 999 : visible != nullptr && *visible == '\0' ? kNoDevice : 0;
}
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = wished("none") ? 0 : 1, 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int length, int) { return std::strncpy(name, "NVIDIA Stand-in", static_cast<std::size_t>(length)), 0; }
int cuDeviceGetUuid(unsigned char* bytes, int) {
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(i * 17);
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t{150} << 30, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132, 0; }
int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory" : code == kNoDevice ? "no CUDA-capable device is detected" : code == kIllegalAddress ? "an illegal memory access was encountered" : code == kCaptureUnsupported ? "operation not permitted when stream is capturing" : "unknown error";
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int) { return wished("full") ? kOutOfMemory : (*context = &contextFlags, 0); }
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) { return *flags = contextFlags, *active = 1, 0; }
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned flags) { return contextFlags = flags, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSetFlags(unsigned flags) { return contextFlags = flags & kScheduleMask, 0; }
int cuCtxGetFlags(unsigned* flags) { return *flags = contextFlags, 0; }

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  *total = totalBytes();
  return *free = *total - std::min(*total, usedBytes.load()), 0;
}
int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  if (allocationFails()) return kOutOfMemory;
  if (bytes == 0) return kInvalidValue;
  if (usedBytes + bytes > totalBytes()) return kOutOfMemory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xA5, bytes);  // the GPU's memory is not cleared
  *address = reinterpret_cast<Address>(memory);
  blocks[*address] = bytes;
  usedBytes += bytes;
  return 0;
}
int cuMemFree_v2(Address address) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  const auto block = blocks.find(address);
  if (block == blocks.end()) return kInvalidValue;
  usedBytes -= block->second;
  blocks.erase(block);
  return std::free(reinterpret_cast<void*>(address)), 0;
}
int cuMemsetD8_v2(Address address, unsigned char value, std::size_t bytes) { return std::memset(reinterpret_cast<void*>(address), value, bytes), 0; }
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (bytes == 0) return kInvalidValue;
  if (*wish("STANDIN_PINNED", "") != '\0') return kOutOfMemory;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::lock_guard<std::mutex> lock(memoryMutex);
  pinned.insert(*memory);
  return ++usedBytes, 0;
}
int cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned) { return *address = reinterpret_cast<Address>(memory), 0; }
int cuMemFreeHost(void* memory) {
  {
    std::lock_guard<std::mutex> lock(memoryMutex);
    usedBytes -= pinned.erase(memory);
  }
  return std::free(memory), 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream* stream) {
  return enqueue(stream, copyUs(), [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream* stream) {
  return enqueue(stream, copyUs(), [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Stream* stream) {
  return enqueue(stream, copyUs(), [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}

int cuStreamCreate(Stream** stream, unsigned) { return *stream = new Stream, 0; }
int cuStreamDestroy_v2(Stream* stream) { return delete stream, 0; }
int cuStreamSynchronize(Stream* stream) { return stream == nullptr ? 0 : refusedByCapture(stream) ? kCaptureUnsupported : waitUntil(stream->freeAtUs); }
int cuStreamQuery(Stream* stream) { return refusedByCapture(stream) ? kCaptureUnsupported : faulty() ? kIllegalAddress : nowUs() < stream->freeAtUs ? kNotReady : 0; }
int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  if (stream->capture == nullptr) stream->freeAtUs = std::max(stream->freeAtUs, event->atUs);
  return 0;
}
int cuStreamBeginCapture_v2(Stream* stream, int) {
  stream->capture = new Graph;
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
int cuGraphUpload(Graph*, Stream*) { return 0; }
int cuGraphLaunch(Graph* graph, Stream* stream) {
  for (const Work& work : graph->work) enqueue(stream, work.us, work.action);
  return 0;
}
int cuGraphDestroy(Graph* graph) { return delete graph, 0; }
int cuGraphExecDestroy(Graph* graph) { return delete graph, 0; }

int cuEventCreate(Event** event, unsigned flags) {
  note(flags == 0 ? "event that spins" : flags == 1 ? "event that blocks" : "event without time");
  return *event = new Event(flags), 0;
}
int cuEventDestroy_v2(Event* event) { return delete event, 0; }
int cuEventRecord(Event* event, Stream* stream) {
  if (stream->capture == nullptr) event->atUs = std::max(stream->freeAtUs, nowUs());
  return 0;
}
int cuEventSynchronize(Event* event) { return waitUntil(event->atUs); }
int cuEventQuery(Event* event) { return faulty() ? kIllegalAddress : nowUs() < event->atUs ? kNotReady : 0; }
int cuEventElapsedTime(float* ms, Event* from, Event* to) {
  constexpr unsigned kDisableTiming = 2;
  if (((from->flags | to->flags) & kDisableTiming) != 0) return 400;
  if (nowUs() < std::max(from->atUs, to->atUs)) return kNotReady;
  return *ms = static_cast<float>((to->atUs - from->atUs) / 1000), 0;
}

// For the stand-in engines: how much longer a kernel takes because of where a tensor lies.
double standinBusUs(const void* tensor) {
  std::lock_guard<std::mutex> lock(memoryMutex);
  return pinned.count(tensor) == 0 ? 0 : std::atof(wish("STANDIN_BUS_US", "0"));
}

// For the stand-in engines: a kernel, with an argument that is copied as a GPU copies a kernel's parameters.
int standinLaunchCopy(Stream* stream, double us, void (*kernel)(void*), const void* argument, std::size_t bytes) {
  const char* first = static_cast<const char*>(argument);
  std::vector<char> copied(first, first + bytes);
  return enqueue(stream, us, [kernel, copied]() mutable { kernel(copied.data()); });
}

}
