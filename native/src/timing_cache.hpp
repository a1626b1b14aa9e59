// The timing cache: read before the build, written after it. A cache that the library rejects is reported, never
// skipped silently.
#pragma once
#include "library.hpp"
#include "listeners.hpp"
#include "request.hpp"

namespace trtforge {

class TimingCache {
 public:
  // Sets the cache of the request on the configuration: the file's content where there is a file, else an empty one.
  TimingCache(const InferenceLibrary& library, const Facade& config, const BuildRequest& request, Listener& listener);

  // Writes the cache as the build left it to `timingCacheOutputPath`.
  void save(const InferenceLibrary& library, const Facade& config, const BuildRequest& request) const;
  // `none`, `new`, `hit` or `rejected`; final once the build is over, because the library rejects a cache only when it
  // looks at it.
  const char* use(Listener& listener) const;

 private:
  enum class Use { kNone, kNew, kGiven, kRejected } use_ = Use::kNone;
  Owned cache_;
};

}  // namespace trtforge
