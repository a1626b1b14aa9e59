#include "timing_cache.hpp"

#include <utility>

#include "files.hpp"

namespace trtforge {

namespace {

// The library's own words for a cache of another version or device (8.6 to 11, tensorrt-rtx).
const std::vector<std::string> kRejections = {"invalid timing cache", "timing cache will not be used",
                                              "timing cache is invalid", "ignoring the timing cache"};

}  // namespace

TimingCache::TimingCache(const InferenceLibrary& library, const Facade& config, const BuildRequest& request,
                         Listener& listener) {
  if (request.timingCacheOutputPath.empty() && request.timingCachePaths.empty()) return;
  const auto create = [&](const void* bytes, std::size_t size) {
    return Owned(library, config.call(Slot::IBuilderConfig_createTimingCache_2, bytes, size));
  };
  const auto set = [&] { return cache_ && config.call(Slot::IBuilderConfig_setTimingCache_2, cache_.get(), false); };
  for (const std::string& path : request.timingCachePaths) {
    const std::vector<char> bytes = fileExists(path) ? readFile(path) : std::vector<char>();
    if (bytes.empty()) continue;
    Owned given = create(bytes.data(), bytes.size());
    const bool isFirst = merged_.empty();
    if (isFirst) cache_ = std::move(given);
    const bool isTaken = isFirst ? set() : given && cache_.call(Slot::ITimingCache_combine_2, given.get(), false);
    (isTaken ? merged_ : rejected_).push_back(path);
  }
  use_ = !merged_.empty() ? "hit" : rejected_.empty() ? "new" : "rejected";
  if (!merged_.empty()) return;
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

void TimingCache::report(BuildResult& result, Listener& listener) {
  // 8.6 prints of a valid cache that it "will not be used" where it means its compiler's part.
  if (!merged_.empty() && listener.received(kRejections) && !listener.received({"Global timing cache in use"}, kInfo)) {
    use_ = "rejected";
    // Of the others nothing is known: they were merged into one that is not valid.
    rejected_ = std::exchange(merged_, {});
  }
  result.timingCache = use_;
  result.timingCachesMerged = merged_;
  result.timingCachesRejected = rejected_;
}

}  // namespace trtforge
