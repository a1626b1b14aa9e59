// The GPUs of this machine, by the CUDA driver API and NVML, both loaded at run time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trtforge {

struct Gpu {
  std::int32_t index = 0;
  std::string name;
  std::string uuid;                    // GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
  std::int32_t computeCapability = 0;  // 90 for 9.0
  std::int64_t memoryBytes = 0;
  std::int32_t multiprocessors = 0;
};

struct GpuList {
  std::vector<Gpu> gpus;
  std::string cudaVersion;    // `13.0`; empty without a driver
  std::string driverVersion;  // `580.65.06`; empty without NVML
  std::string reason;         // why there are no GPUs; empty when there are
};

// Never throws for a missing driver or GPU: the list then states why it is empty.
GpuList listGpus();

// Why the driver shows no GPU: `the CUDA driver shows no GPU (CUDA_VISIBLE_DEVICES is empty, which hides every GPU).`
std::string noGpuShown();

// TensorRT ends the whole process where it finds no GPU, so this is asked first. Throws TF_BUILDER_UNAVAILABLE with the
// reason.
void requireGpu(const std::string& product);

}  // namespace trtforge
