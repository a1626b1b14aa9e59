// A GPU's clocks, temperature, power and other processes at this moment, as NVML reports them. NVML is loaded when
// first asked and shut down when the process ends.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trtforge {

struct GpuProcess {
  std::int64_t pid = 0;
  std::optional<std::int64_t> usedBytes;
};

// A field is empty where the board, the driver or missing permission does not provide it.
struct GpuState {
  std::optional<std::int64_t> smClockMHz;
  std::optional<std::int64_t> memoryClockMHz;
  std::optional<std::int64_t> maxSmClockMHz;
  std::optional<std::int64_t> maxMemoryClockMHz;
  std::optional<std::int64_t> temperatureC;
  std::optional<std::int64_t> slowdownTemperatureC;
  std::optional<double> powerW;
  std::optional<double> powerLimitW;
  std::optional<std::int64_t> throttleReasons;  // bits of nvmlClocksEventReasons
  std::optional<std::int64_t> utilizationPercent;
  std::optional<std::int64_t> memoryUsedBytes;
  std::optional<std::int64_t> memoryTotalBytes;
  std::optional<bool> persistenceMode;
  std::optional<bool> migMode;
  std::optional<std::int64_t> eccErrorsUncorrected;  // since the driver was loaded
  std::optional<std::vector<GpuProcess>> processes;  // of every user, with a compute context; this one included
};

// `uuid` as in `Gpu::uuid`, whatever CUDA_VISIBLE_DEVICES hides. Empty where NVML is absent or does not know the GPU.
// Never throws for either.
std::optional<GpuState> gpuState(const std::string& uuid);

}  // namespace trtforge
