#include "plan_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trtforge {

namespace {

using Clock = std::chrono::steady_clock;

double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

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
  // A plan that is cut in place while the library reads it ends the process (SIGBUS); stores replace plans by renaming,
  // which leaves this file as it is.
  const void* bytes = plan.map(InputFile::Pages::kNow);
  cost.readMs = msSince(start);
  Owned engine(library, library.generation() == Generation::k8
                            ? runtime.call(Slot::IRuntime_deserializeCudaEngine_3, bytes, plan.size(),
                                           static_cast<void*>(nullptr))
                            : runtime.call(Slot::IRuntime_deserializeCudaEngine_2, bytes, plan.size()));
  cost.deserializeMs = msSince(start) - cost.readMs;
  plan.checkUnchanged();
  const Resident after = resident();
  // The peak may be of before this load: then it is an upper bound. The kernel's counts are some pages late, which a
  // small plan does not exceed.
  cost.peakBytes = std::max<std::int64_t>(0, after.peak - before.now);
  cost.anonymousBytes = after.anonymous - before.anonymous;
  cost.mappedBytes = after.mapped - before.mapped;
  return engine;
}

}  // namespace trtforge
