// A plan on its way from the disk to the library, without a copy of the whole file in memory.
#pragma once
#include <cstdint>
#include <optional>

#include "files.hpp"
#include "library.hpp"

namespace trtforge {

// What loading a plan took.
struct LoadCost {
  // Inside our reader; nothing where the library reads a mapped file itself.
  std::optional<double> readMs;
  double deserializeMs = 0;  // without `readMs`
  // By how many bytes this process grew: at most, and then in memory of its own and in mapped files. At most 0 where
  // the kernel does not report it.
  std::int64_t peakBytes = 0, anonymousBytes = 0, mappedBytes = 0;
};

// The ICudaEngine, empty where the library rejects the plan. Throws TF_FILE_UNREADABLE for a file that became shorter
// or that somebody wrote to.
Owned deserialize(InputFile& plan, const InferenceLibrary& library, const Facade& runtime, LoadCost& cost);

}  // namespace trtforge
