// The timing cache: several are read and merged before the build, one is written after it. A cache that the library
// rejects is reported, never skipped silently.
#pragma once
#include "library.hpp"
#include "listeners.hpp"
#include "request.hpp"

namespace trtforge {

class TimingCache {
 public:
  // Sets one cache on the configuration: what the files of the request hold together, or an empty one.
  TimingCache(const InferenceLibrary& library, const Facade& config, const BuildRequest& request, Listener& listener);

  // Writes the cache as the build left it to `timingCacheOutputPath`.
  void save(const InferenceLibrary& library, const Facade& config, const BuildRequest& request) const;
  // `none`, `new`, `hit` or `rejected`, and the files that were used and rejected; final once the build is over,
  // because the library rejects a cache only when it looks at it.
  void report(BuildResult& result, Listener& listener);

 private:
  const char* use_ = "none";
  Owned cache_;
  std::vector<std::string> merged_, rejected_;
};

}  // namespace trtforge
