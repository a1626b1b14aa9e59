// The GPUs that the fake libcuda shows, their primary contexts, and which of these is current on a thread. A context is its GPU.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "gpus.hpp"

namespace fake {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101, kInvalidContext = 201, kInvalidHandle = 400, kNotReady = 600, kIllegalAddress = 700,
              kCaptureUnsupported = 900, kCaptureInvalidated = 901;

struct Gpu {
  explicit Gpu(int index) : index(index) {}
  const int index;  // in the machine, whatever is shown
  // Every stream, event, graph and piece of pinned memory takes a byte of it, so that one that is left behind shows.
  std::atomic<std::size_t> usedBytes{std::size_t{1} << 30};
  // A kernel touched what is not there: nothing goes on in this context.
  std::atomic<bool> astray{false};

  // FAKE_GPU_BYTES: how much memory there is; several numbers are of the first GPU, the second, …
  std::size_t totalBytes() const {
    const char* rest = setting("FAKE_GPU_BYTES", "161061273600");
    for (int skipped = 0; skipped < index && std::strchr(rest, ',') != nullptr; ++skipped) rest = std::strchr(rest, ',') + 1;
    return std::strtoull(rest, nullptr, 10);
  }
};

inline bool gpuRequested(const char* what) { return std::strcmp(setting("FAKE_GPU", ""), what) == 0; }

// CUDA_VISIBLE_DEVICES: indices and beginnings of UUIDs, of which the first that is none of the machine's ends the list. Read once, as CUDA does.
inline std::vector<std::unique_ptr<Gpu>> shownGpus() {
  std::vector<std::unique_ptr<Gpu>> shown;
  const auto show = [&](int index) { shown.push_back(std::make_unique<Gpu>(index)); };
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int index = 0; list == nullptr && index < machineGpus(); ++index) show(index);
  std::string rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::size_t first = rest.find_first_not_of(' ');
    if (first == std::string::npos) break;
    const std::string entry = rest.substr(first, end == std::string::npos ? end : end - first);
    int chosen = -1;
    for (int index = 0; index < machineGpus(); ++index)
      if (entry == std::to_string(index) || (entry.size() > 4 && uuidText(index).compare(0, entry.size(), entry) == 0)) chosen = index;
    if (chosen < 0) break;
    show(chosen);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return shown;
}

// Never freed: threads that outlive the process's end may still ask.
inline const std::vector<std::unique_ptr<Gpu>>& gpus() {
  static const auto* all = new std::vector<std::unique_ptr<Gpu>>(shownGpus());
  return *all;
}

// Null for an ordinal that is not shown.
inline Gpu* gpuAt(int ordinal) { return ordinal < 0 || ordinal >= static_cast<int>(gpus().size()) ? nullptr : gpus()[static_cast<std::size_t>(ordinal)].get(); }

inline thread_local Gpu* current = nullptr;

// A byte of a GPU's memory, for as long as the object lives.
struct Held {
  explicit Held(Gpu* gpu) : gpu(gpu) { ++gpu->usedBytes; }
  Held(const Held& other) : Held(other.gpu) {}
  ~Held() { --gpu->usedBytes; }
  Gpu* const gpu;
};

}  // namespace fake
