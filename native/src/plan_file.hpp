// A plan on its way from the disk to the library, without a copy of the whole file in memory.
#pragma once
#include <cstdint>

#include "files.hpp"
#include "library.hpp"

namespace trtforge {

// What loading a plan took.
struct LoadCost {
  // Until the pages of the plan were in memory, and until the library had made an engine of them.
  double readMs = 0, deserializeMs = 0;
  // By how many bytes this process grew: at most, and then in memory of its own and in mapped files. At most 0 where
  // the kernel does not report it.
  std::int64_t peakBytes = 0, anonymousBytes = 0, mappedBytes = 0;
};

// The ICudaEngine, empty where the library rejects the plan. Throws TF_FILE_UNREADABLE for a file that became shorter
// or that somebody wrote to.
Owned deserialize(InputFile& plan, const InferenceLibrary& library, const Facade& runtime, LoadCost& cost);

}  // namespace trtforge
