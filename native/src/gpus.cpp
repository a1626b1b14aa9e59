#include "gpus.hpp"

#include <cstdio>
#include <cstdlib>

#include "cuda.hpp"
#include "library.hpp"

namespace trtforge {

namespace {

using cuda::kNoDevice;
using cuda::kSuccess;
// Numbers of the CUDA driver API.
constexpr int kMultiprocessors = 16;
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

struct Uuid {
  unsigned char bytes[16];
};

std::string uuidText(const Uuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", uuid.bytes[i]);
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(hex);
  }
  return text;
}

class Driver {
 public:
  explicit Driver(const SharedLibrary& library) : library_(library) {}

  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const {
    return library_.symbol<int (*)(Arguments...)>(function)(arguments...);
  }
  std::string errorText(int code) const {
    const char* text = nullptr;
    call("cuGetErrorString", code, &text);
    return text == nullptr ? "CUDA error " + std::to_string(code)
                           : std::string(text) + " (CUDA error " + std::to_string(code) + ")";
  }
  int attribute(int attribute, int device) const {
    int value = 0;
    call("cuDeviceGetAttribute", &value, attribute, device);
    return value;
  }

 private:
  const SharedLibrary& library_;
};

Gpu describe(const Driver& driver, int index) {
  Gpu gpu;
  gpu.index = index;
  int device = 0;
  char name[256] = "";
  Uuid uuid = {};
  std::size_t memory = 0;
  driver.call("cuDeviceGet", &device, index);
  driver.call("cuDeviceGetName", static_cast<char*>(name), static_cast<int>(sizeof name), device);
  driver.call("cuDeviceGetUuid", &uuid, device);
  driver.call("cuDeviceTotalMem_v2", &memory, device);
  gpu.name = name;
  gpu.uuid = uuidText(uuid);
  gpu.memoryBytes = static_cast<std::int64_t>(memory);
  gpu.computeCapability = driver.attribute(kCapabilityMajor, device) * 10 + driver.attribute(kCapabilityMinor, device);
  gpu.multiprocessors = driver.attribute(kMultiprocessors, device);
  return gpu;
}

std::string driverVersion() {
  try {
    const SharedLibrary nvml = SharedLibrary::open("libnvidia-ml.so.1");
    if (nvml.symbol<int (*)()>("nvmlInit_v2")() != kSuccess) return "";
    char version[96] = "";
    nvml.symbol<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion")(version, sizeof version);
    nvml.symbol<int (*)()>("nvmlShutdown")();
    return version;
  } catch (const Failure&) {
    return "";
  }
}

void fill(GpuList& list, const Driver& driver) {
  int version = 0;
  driver.call("cuDriverGetVersion", &version);
  list.cudaVersion = std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100);
  const int initialised = driver.call("cuInit", 0u);
  int count = 0;
  if (initialised == kNoDevice)
    list.reason = noGpuShown();
  else if (initialised != kSuccess)
    list.reason = "the CUDA driver does not start: " + driver.errorText(initialised) + ".";
  else if (const int counted = driver.call("cuDeviceGetCount", &count); counted != kSuccess)
    list.reason = "the CUDA driver cannot count its GPUs: " + driver.errorText(counted) + ".";
  else if (count == 0)
    list.reason = noGpuShown();
  for (int index = 0; index < count; ++index) list.gpus.push_back(describe(driver, index));
}

}  // namespace

std::string noGpuShown() {
  const std::string shown = "the CUDA driver shows no GPU";
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return shown + ".";
  if (*visible == '\0') return shown + " (CUDA_VISIBLE_DEVICES is empty, which hides every GPU).";
  return shown + " (CUDA_VISIBLE_DEVICES is «" + visible + "», which may hide them).";
}

GpuList listGpus() {
  GpuList list;
  list.driverVersion = driverVersion();
  try {
    const SharedLibrary library = SharedLibrary::open("libcuda.so.1");
    fill(list, Driver(library));
  } catch (const Failure& failure) {
    list.reason = "there is no NVIDIA driver: " + failure.message;
  }
  return list;
}

void requireGpu(const std::string& product) {
  const GpuList list = listGpus();
  if (list.gpus.empty()) throw Failure("TF_BUILDER_UNAVAILABLE", product + " needs an NVIDIA GPU, and " + list.reason);
}

}  // namespace trtforge
