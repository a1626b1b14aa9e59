#include "gpu_state.hpp"

#include <algorithm>
#include <cstring>

#include "library.hpp"

namespace trtforge {

namespace {

// Numbers and layouts of NVML's public interface, version 11 and later.
using Device = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kSensorGpu = 0;
constexpr int kThresholdSlowdown = 1;
constexpr int kUncorrected = 1;
constexpr int kSinceDriverLoad = 0;
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};

struct Utilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};

struct Memory {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint64_t used = 0;  // with what the driver keeps for itself
};

// Names its own size and version in its first word.
struct Memory2 {
  unsigned version = sizeof(Memory2) | 2u << 24;
  std::uint64_t total = 0;
  std::uint64_t reserved = 0;
  std::uint64_t free = 0;
  std::uint64_t used = 0;
};

// A process starts with these in every version; its length differs.
struct ProcessHead {
  unsigned pid;
  std::uint64_t usedBytes;
};
constexpr std::size_t kProcess1 = 16;
constexpr std::size_t kProcess2 = 24;
// Drivers 535.43 to 535.98 add one number under the same function name.
constexpr std::size_t kProcess535 = 32;

class Nvml {
 public:
  static const Nvml* instance() {
    static const Nvml nvml;
    return nvml.library_.has_value() ? &nvml : nullptr;
  }

  // False too where this driver's NVML has no such function.
  template <class... Arguments>
  bool ask(const char* function, Arguments... arguments) const {
    return call(function, arguments...) == kNvmlSuccess;
  }

  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const {
    void* symbol = library_->find(function);
    return symbol == nullptr ? kMissing : reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }

  bool has(const char* function) const { return library_->find(function) != nullptr; }

  // One number of a device.
  template <class Number = unsigned, class... Arguments>
  std::optional<std::int64_t> number(const char* function, Device device, Arguments... arguments) const {
    Number value = 0;
    std::optional<std::int64_t> answer;
    if (ask(function, device, arguments..., &value)) answer = static_cast<std::int64_t>(value);
    return answer;
  }

 private:
  static constexpr int kMissing = -1;

  Nvml() {
    try {
      library_ = SharedLibrary::open("libnvidia-ml.so.1");
    } catch (const Failure&) {
      return;
    }
    if (!ask("nvmlInit_v2")) library_.reset();
  }
  ~Nvml() {
    if (library_.has_value()) ask("nvmlShutdown");
  }

  std::optional<SharedLibrary> library_;
};

// CUDA may name a MIG slice where NVML wants the word MIG before the same digits.
std::optional<Device> find(const Nvml& nvml, const std::string& uuid) {
  Device device = nullptr;
  if (nvml.ask("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device)) return device;
  if (uuid.compare(0, 4, "GPU-") != 0) return std::nullopt;
  const std::string slice = "MIG-" + uuid.substr(4);
  if (!nvml.ask("nvmlDeviceGetHandleByUUID", slice.c_str(), &device)) return std::nullopt;
  return device;
}

// Clocks, heat and power belong to the whole board.
Device board(const Nvml& nvml, Device device) {
  unsigned slice = 0;
  Device parent = nullptr;
  const bool isSlice = nvml.ask("nvmlDeviceIsMigDeviceHandle", device, &slice) && slice != 0;
  return isSlice && nvml.ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device, &parent) ? parent : device;
}

std::optional<double> watts(std::optional<std::int64_t> milliwatts) {
  if (!milliwatts.has_value()) return std::nullopt;
  return static_cast<double>(*milliwatts) / 1000;
}

std::optional<bool> flag(std::optional<std::int64_t> number) {
  if (!number.has_value()) return std::nullopt;
  return *number != 0;
}

std::optional<std::int64_t> throttleReasons(const Nvml& nvml, Device device) {
  const auto reasons = nvml.number<std::uint64_t>("nvmlDeviceGetCurrentClocksEventReasons", device);
  return reasons.has_value() ? reasons
                             : nvml.number<std::uint64_t>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
}

void readMemory(const Nvml& nvml, Device device, GpuState& state) {
  Memory2 exact;
  Memory rough;
  if (nvml.ask("nvmlDeviceGetMemoryInfo_v2", device, &exact)) {
    state.memoryUsedBytes = static_cast<std::int64_t>(exact.used);
    state.memoryTotalBytes = static_cast<std::int64_t>(exact.total);
  } else if (nvml.ask("nvmlDeviceGetMemoryInfo", device, &rough)) {
    state.memoryUsedBytes = static_cast<std::int64_t>(rough.used);
    state.memoryTotalBytes = static_cast<std::int64_t>(rough.total);
  }
}

bool driverOf535(const Nvml& nvml) {
  char version[96] = "";
  return nvml.ask("nvmlSystemGetDriverVersion", static_cast<char*>(version), static_cast<unsigned>(sizeof version)) &&
         std::strncmp(version, "535.", 4) == 0;
}

// Drivers of 535 that write the longer entries are recognised by the bytes they touch behind the shorter ones.
std::size_t strideOf(const Nvml& nvml, const std::vector<unsigned char>& buffer, std::size_t count,
                     std::size_t expected, unsigned char untouched) {
  if (expected != kProcess2 || !driverOf535(nvml)) return expected;
  for (std::size_t i = count * kProcess2; i < count * kProcess535; ++i)
    if (buffer[i] != untouched) return kProcess535;
  return kProcess2;
}

std::optional<std::vector<GpuProcess>> listWith(const Nvml& nvml, const char* function, std::size_t length,
                                                Device device) {
  constexpr unsigned char kUntouched = 0xA5;
  constexpr int kTries = 4;  // processes may start between asking how many and asking which
  unsigned capacity = 16;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::vector<unsigned char> buffer(capacity * kProcess535, kUntouched);
    unsigned count = capacity;
    const int answer = nvml.call(function, device, &count, static_cast<void*>(buffer.data()));
    if (answer == kInsufficientSize) {
      capacity = std::max(capacity, count) + 16;
      continue;
    }
    if (answer != kNvmlSuccess || count > capacity) return std::nullopt;
    const std::size_t stride = strideOf(nvml, buffer, count, length, kUntouched);
    std::vector<GpuProcess> processes;
    for (unsigned i = 0; i < count; ++i) {
      ProcessHead head;
      std::memcpy(&head, buffer.data() + i * stride, sizeof head);
      GpuProcess process;
      process.pid = head.pid;
      if (head.usedBytes != kNotAvailable) process.usedBytes = static_cast<std::int64_t>(head.usedBytes);
      processes.push_back(process);
    }
    return processes;
  }
  return std::nullopt;
}

// The newest function this driver has decides; an older one beside it would write another layout.
std::optional<std::vector<GpuProcess>> listProcesses(const Nvml& nvml, Device device) {
  if (nvml.has("nvmlDeviceGetComputeRunningProcesses_v3"))
    return listWith(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", kProcess2, device);
  if (nvml.has("nvmlDeviceGetComputeRunningProcesses_v2"))
    return listWith(nvml, "nvmlDeviceGetComputeRunningProcesses_v2", kProcess2, device);
  return listWith(nvml, "nvmlDeviceGetComputeRunningProcesses", kProcess1, device);
}

std::optional<bool> migMode(const Nvml& nvml, Device device) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!nvml.ask("nvmlDeviceGetMigMode", device, &current, &pending)) return std::nullopt;
  return current != 0;
}

GpuState read(const Nvml& nvml, Device device) {
  const Device whole = board(nvml, device);
  GpuState state;
  state.smClockMHz = nvml.number("nvmlDeviceGetClockInfo", whole, kClockSm);
  state.memoryClockMHz = nvml.number("nvmlDeviceGetClockInfo", whole, kClockMemory);
  state.maxSmClockMHz = nvml.number("nvmlDeviceGetMaxClockInfo", whole, kClockSm);
  state.maxMemoryClockMHz = nvml.number("nvmlDeviceGetMaxClockInfo", whole, kClockMemory);
  state.temperatureC = nvml.number("nvmlDeviceGetTemperature", whole, kSensorGpu);
  state.slowdownTemperatureC = nvml.number("nvmlDeviceGetTemperatureThreshold", whole, kThresholdSlowdown);
  state.powerW = watts(nvml.number("nvmlDeviceGetPowerUsage", whole));
  state.powerLimitW = watts(nvml.number("nvmlDeviceGetEnforcedPowerLimit", whole));
  state.throttleReasons = throttleReasons(nvml, whole);
  Utilization utilization;
  if (nvml.ask("nvmlDeviceGetUtilizationRates", whole, &utilization)) state.utilizationPercent = utilization.gpu;
  readMemory(nvml, device, state);
  state.persistenceMode = flag(nvml.number("nvmlDeviceGetPersistenceMode", whole));
  state.migMode = migMode(nvml, whole);
  state.eccErrorsUncorrected =
      nvml.number<std::uint64_t>("nvmlDeviceGetTotalEccErrors", whole, kUncorrected, kSinceDriverLoad);
  state.processes = listProcesses(nvml, device);
  return state;
}

}  // namespace

std::optional<GpuState> gpuState(const std::string& uuid) {
  const Nvml* nvml = Nvml::instance();
  if (nvml == nullptr) return std::nullopt;
  const auto device = find(*nvml, uuid);
  if (!device.has_value()) return std::nullopt;
  return read(*nvml, *device);
}

}  // namespace trtforge
