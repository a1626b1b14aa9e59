#include "timing_cache.hpp"

#include "files.hpp"

namespace trtforge {

namespace {

// The library's own words for a cache of another version or device (8.6 to 11, tensorrt-rtx).
const std::vector<std::string> kRejections = {"invalid timing cache", "timing cache will not be used",
                                              "timing cache is invalid", "ignoring the timing cache"};

}  // namespace

TimingCache::TimingCache(const InferenceLibrary& library, const Facade& config, const BuildRequest& request,
                         Listener& listener) {
  if (request.timingCacheOutputPath.empty() && request.timingCachePath.empty()) return;
  const auto create = [&](const void* bytes, std::size_t size) {
    return Owned(library, config.call(Slot::IBuilderConfig_createTimingCache_2, bytes, size));
  };
  const auto set = [&] { return cache_ && config.call(Slot::IBuilderConfig_setTimingCache_2, cache_.get(), false); };
  if (!request.timingCachePath.empty() && fileExists(request.timingCachePath)) {
    const std::vector<char> bytes = readFile(request.timingCachePath);
    cache_ = create(bytes.data(), bytes.size());
    use_ = bytes.empty() ? Use::kNew : set() ? Use::kGiven : Use::kRejected;
    if (use_ == Use::kGiven) return;
  } else {
    use_ = Use::kNew;
  }
  cache_ = create(nullptr, 0);
  if (!set()) throw listener.failure("TF_BUILD_FAILED", library.name() + " cannot make an empty timing cache.");
}

void TimingCache::save(const InferenceLibrary& library, const Facade& config, const BuildRequest& request) const {
  if (request.timingCacheOutputPath.empty()) return;
  const Facade current(library, config.call(Slot::IBuilderConfig_getTimingCache_0));
  if (!current) return;
  const Owned memory(library, current.call(Slot::ITimingCache_serialize_0));
  if (!memory) return;
  writeFile(request.timingCacheOutputPath, memory.call(Slot::IHostMemory_data_0),
            memory.call(Slot::IHostMemory_size_0));
}

const char* TimingCache::use(Listener& listener) const {
  switch (use_) {
    case Use::kNone:
      return "none";
    case Use::kNew:
      return "new";
    case Use::kRejected:
      return "rejected";
    case Use::kGiven:
      break;
  }
  return listener.received(kRejections) ? "rejected" : "hit";
}

}  // namespace trtforge
