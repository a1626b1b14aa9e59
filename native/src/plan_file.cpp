#include "plan_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "versioned.hpp"

namespace trtforge {

namespace {

using Clock = std::chrono::steady_clock;

double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// IStreamReader, which every 10.x takes; later generations take another one, which also has to fill memory of the GPU.
class StreamReader : public Versioned {
 public:
  explicit StreamReader(const InputFile& file) : file_(file) {}
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"IStreamReader", 1, 0}; }
  // The number of bytes, fewer only at the end of the file; negative where they cannot be read.
  virtual std::int64_t read(void* to, std::int64_t bytes) noexcept {
    const auto start = Clock::now();
    try {
      const std::size_t count = std::min(static_cast<std::size_t>(bytes), file_.size() - position_);
      file_.read(to, count, position_);
      position_ += count;
      ms_ += msSince(start);
      return static_cast<std::int64_t>(count);
    } catch (const Failure& failure) {
      failure_ = failure;
      return -1;
    }
  }

  double ms() const { return ms_; }
  void check() const {
    if (failure_.has_value()) throw *failure_;
  }

 private:
  const InputFile& file_;
  std::size_t position_ = 0;
  double ms_ = 0;
  std::optional<Failure> failure_;
};

// A process's resident memory in bytes, as the kernel reports it.
struct Resident {
  std::int64_t peak = 0, now = 0, anonymous = 0, mapped = 0;
};

Resident resident() {
  Resident memory;
  // Not a stream: libstdc++'s needs symbols of glibc that old systems lack.
  std::FILE* status = std::fopen("/proc/self/status", "re");
  if (status == nullptr) return memory;
  char line[256];
  while (std::fgets(line, sizeof line, status) != nullptr) {
    const std::string text = line;
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = text.substr(0, colon);
    const auto bytes = static_cast<std::int64_t>(std::strtoull(line + colon + 1, nullptr, 10)) * 1024;
    if (key == "VmHWM") memory.peak = bytes;
    if (key == "VmRSS") memory.now = bytes;
    if (key == "RssAnon") memory.anonymous = bytes;
    if (key == "RssFile") memory.mapped = bytes;
  }
  std::fclose(status);
  return memory;
}

}  // namespace

Owned deserialize(InputFile& plan, const InferenceLibrary& library, const Facade& runtime, LoadCost& cost) {
  const Resident before = resident();
  const auto start = Clock::now();
  Owned engine;
  if (library.has(Slot::IRuntime_deserializeCudaEngine_1)) {
    StreamReader reader(plan);
    engine = Owned(library, runtime.call(Slot::IRuntime_deserializeCudaEngine_1, static_cast<void*>(&reader)));
    reader.check();
    cost.readMs = reader.ms();
  } else {
    // A plan that is cut in place while the library reads it ends the process (SIGBUS); stores replace plans by
    // renaming, which leaves this file as it is.
    const void* bytes = plan.map();
    engine = Owned(library, library.generation() == Generation::k8
                                ? runtime.call(Slot::IRuntime_deserializeCudaEngine_3, bytes, plan.size(),
                                               static_cast<void*>(nullptr))
                                : runtime.call(Slot::IRuntime_deserializeCudaEngine_2, bytes, plan.size()));
  }
  cost.deserializeMs = msSince(start) - cost.readMs.value_or(0);
  plan.checkUnchanged();
  const Resident after = resident();
  // The peak may be of before this load: then it is an upper bound.
  cost.peakBytes = after.peak - before.now;
  cost.anonymousBytes = after.anonymous - before.anonymous;
  cost.mappedBytes = after.mapped - before.mapped;
  return engine;
}

}  // namespace trtforge
