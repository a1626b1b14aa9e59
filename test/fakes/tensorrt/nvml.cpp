// A fake for libnvidia-ml: the GPUs of the machine, whatever CUDA_VISIBLE_DEVICES hides, healthy and alone unless the test settings otherwise in
// FAKE_NVML, `name=value` for all of them or `name@1=value` for one, separated by commas.
// A value `-` is "not supported"; `processes` are `pid:bytes` joined by `+`, bytes `-` where NVML does not know them.
// FAKE_NVML_API is the age of its list of processes: 1, 2, 3, or 535 for the drivers with longer entries.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gpus.hpp"

#ifndef FAKE_NVML_API
#define FAKE_NVML_API 3
#endif

namespace {

constexpr int kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7, kUninitialised = 1;
struct Board {
  int gpu;
  bool slice;  // of that GPU in MIG mode
};
using Device = const Board*;

int users = 0;

std::string setting(const std::string& name, const std::string& otherwise) {
  std::string rest = fake::setting("FAKE_NVML", "");
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::string one = rest.substr(0, end);
    if (one.compare(0, name.size() + 1, name + "=") == 0) return one.substr(name.size() + 1);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return otherwise;
}
std::string setting(Device device, const std::string& name, const std::string& otherwise) {
  return setting(name + "@" + std::to_string(device->gpu), setting(name, otherwise));
}

const std::vector<Board>& boards(bool slices) {
  static std::vector<Board> all[2];
  auto& list = all[slices ? 1 : 0];
  while (static_cast<int>(list.size()) < fake::machineGpus()) list.push_back({static_cast<int>(list.size()), slices});
  return list;
}

template <class Number>
int answer(Device device, const char* name, const char* otherwise, Number* value) {
  if (users == 0) return kUninitialised;
  const std::string text = setting(device, name, otherwise);
  if (text == "-") return kNotSupported;
  *value = static_cast<Number>(std::strtoull(text.c_str(), nullptr, 0));
  return 0;
}

// Boards tell clocks, heat and power; a MIG slice does not.
template <class Number>
int ofBoard(Device device, const char* name, const char* otherwise, Number* value) {
  return device->slice ? kNotSupported : answer(device, name, otherwise, value);
}

int listProcesses(Device device, unsigned* count, unsigned char* entries, std::size_t length) {
  std::string rest = setting(device, "processes", "");
  if (rest == "-") return kNotSupported;
  const unsigned room = *count;
  *count = 0;
  std::string kept = rest;
  while (!kept.empty()) {
    ++*count;
    const std::size_t end = kept.find('+');
    kept = end == std::string::npos ? "" : kept.substr(end + 1);
  }
  if (*count > room) return kInsufficientSize;
  for (unsigned i = 0; i < *count; ++i) {
    const std::size_t end = rest.find('+');
    const std::string one = rest.substr(0, end);
    const std::string bytes = one.substr(one.find(':') + 1);
    std::uint64_t fields[4] = {std::strtoull(one.c_str(), nullptr, 10), bytes == "-" ? ~std::uint64_t{0} : std::strtoull(bytes.c_str(), nullptr, 10), ~std::uint64_t{0}, 7};
    std::memcpy(entries + i * length, fields, length);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (setting("init", "0") != "0") return std::atoi(setting("init", "0").c_str());
  ++users;
  return 0;
}
int nvmlShutdown() { return users == 0 ? kUninitialised : (--users, 0); }
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  if (users == 0) return kUninitialised;
  return std::strncpy(version, setting("driver", FAKE_NVML_API == 535 ? "535.54.03" : "580.65.06").c_str(), length), 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  if (users == 0) return kUninitialised;
  for (const Board& board : boards(setting("handle", "gpu") == "slice")) {
    if (uuid != (board.slice ? "MIG-" : "GPU-") + fake::uuidText(board.gpu).substr(4)) continue;
    return *device = &board, 0;
  }
  return kNotFound;
}
int nvmlDeviceIsMigDeviceHandle(Device device, unsigned* is) { return *is = device->slice, 0; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device* parent) {
  return device->slice ? (*parent = &boards(false)[static_cast<std::size_t>(device->gpu)], 0) : kInvalidArgument;
}

int nvmlDeviceGetClockInfo(Device device, int type, unsigned* mhz) { return ofBoard(device, type == 1 ? "sm" : "memory", type == 1 ? "1980" : "3201", mhz); }
int nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned* mhz) {
  return ofBoard(device, type == 1 ? "max-sm" : "max-memory", type == 1 ? "1980" : "3201", mhz);
}
int nvmlDeviceGetTemperature(Device device, int, unsigned* celsius) { return ofBoard(device, "temperature", "41", celsius); }
int nvmlDeviceGetTemperatureThreshold(Device device, int which, unsigned* celsius) {
  return which == 1 ? ofBoard(device, "slowdown", "87", celsius) : kInvalidArgument;
}
int nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) { return ofBoard(device, "power", "121500", milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) { return ofBoard(device, "power-limit", "700000", milliwatts); }
#if FAKE_NVML_API == 3
int nvmlDeviceGetCurrentClocksEventReasons(Device device, std::uint64_t* bits) { return ofBoard(device, "reasons", "0", bits); }
#else
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, std::uint64_t* bits) { return ofBoard(device, "reasons", "0", bits); }
#endif
int nvmlDeviceGetUtilizationRates(Device device, unsigned* rates) {
  rates[1] = 99;
  return ofBoard(device, "utilization", "0", rates);
}
int nvmlDeviceGetMemoryInfo(Device device, std::uint64_t* memory) {
  memory[0] = std::uint64_t{150} << 30;
  return answer(device, "used-with-reserved", "1610612736", memory + 2);
}
#if FAKE_NVML_API == 3
int nvmlDeviceGetMemoryInfo_v2(Device device, std::uint64_t* memory) {
  if (static_cast<unsigned>(memory[0]) != (40u | 2u << 24)) return 25;  // another version of the structure
  memory[1] = std::uint64_t{150} << 30;
  return answer(device, "used", "1073741824", memory + 4);
}
#endif
int nvmlDeviceGetPersistenceMode(Device device, unsigned* on) { return ofBoard(device, "persistence", "1", on); }
int nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *pending = 1;
  return ofBoard(device, "mig", "0", current);
}
int nvmlDeviceGetTotalEccErrors(Device device, int kind, int counter, std::uint64_t* errors) {
  return kind == 1 && counter == 0 ? ofBoard(device, "ecc", "0", errors) : kInvalidArgument;
}

#if FAKE_NVML_API == 1
int nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, unsigned char* entries) { return listProcesses(device, count, entries, 16); }
#else
// The newer functions exist beside it and write longer entries, so calling the wrong one shows.
int nvmlDeviceGetComputeRunningProcesses(Device, unsigned*, unsigned char*) { return kInvalidArgument; }
int nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count, unsigned char* entries) { return listProcesses(device, count, entries, 24); }
#endif
#if FAKE_NVML_API == 3
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, unsigned char* entries) { return listProcesses(device, count, entries, 24); }
#elif FAKE_NVML_API == 535
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, unsigned char* entries) { return listProcesses(device, count, entries, 32); }
#endif

}
