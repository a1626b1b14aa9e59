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

  // `none`, `new`, `hit` or `rejected`, and the files that were used and rejected: once the build is over, because the
  // library rejects a cache only when it looks at it.
  void report(BuildResult& result, Listener& listener);
  // Writes the cache as the build left it to `timingCacheOutputPath`; nothing of one that was found to be invalid, in
  // which nothing was stored.
  void save(const InferenceLibrary& library, const Facade& config, const BuildRequest& request) const;

 private:
  const char* use_ = "none";
  Owned cache_;
  bool isStored_ = true;
  const bool isOld_;  // 8.6
  Listener::Mark afterReading_{0};
  std::vector<std::string> merged_, rejected_;
};

}  // namespace trtforge
