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
                         Listener& listener)
    : isOld_(library.generation() == Generation::k8) {
  if (request.timingCacheOutputPath.empty() && request.timingCachePaths.empty()) return;
  const auto create = [&](const void* bytes, std::size_t size) {
    return Owned(library, config.call(Slot::IBuilderConfig_createTimingCache_2, bytes, size));
  };
  const auto set = [&] { return cache_ && config.call(Slot::IBuilderConfig_setTimingCache_2, cache_.get(), false); };
  for (const std::string& path : request.timingCachePaths) {
    const std::vector<char> bytes = fileExists(path) ? readFile(path) : std::vector<char>();
    if (bytes.empty()) continue;
    const Listener::Mark before = listener.mark();
    Owned given = create(bytes.data(), bytes.size());
    // Later libraries say at once that they make an empty one of it. 8.6 prints the same of a valid cache where it
    // means its compiler's part.
    bool isTaken = given && (isOld_ || listener.complaintSince(before, kRejections).empty());
    if (isTaken && !merged_.empty()) {
      isTaken = cache_.call(Slot::ITimingCache_combine_2, given.get(), false);
    } else if (isTaken) {
      cache_ = std::move(given);
      isTaken = set();
    }
    (isTaken ? merged_ : rejected_).push_back(path);
  }
  afterReading_ = listener.mark();
  use_ = !merged_.empty() ? "hit" : rejected_.empty() ? "new" : "rejected";
  if (!merged_.empty()) return;
  cache_ = create(nullptr, 0);
  if (!set()) throw listener.failure("TF_BUILD_FAILED", library.name() + " cannot make an empty timing cache.");
}

void TimingCache::save(const InferenceLibrary& library, const Facade& config, const BuildRequest& request) const {
  if (request.timingCacheOutputPath.empty() || !isStored_) return;
  const Facade current(library, config.call(Slot::IBuilderConfig_getTimingCache_0));
  if (!current) return;
  const Owned memory(library, current.call(Slot::ITimingCache_serialize_0));
  if (!memory) return;
  writeFile(request.timingCacheOutputPath, memory.call(Slot::IHostMemory_data_0),
            memory.call(Slot::IHostMemory_size_0));
}

void TimingCache::report(BuildResult& result, Listener& listener) {
  const bool isRejected = listener.received(kRejections, kWarning, afterReading_);
  const bool isLocal = isOld_ && !listener.received({"Global timing cache in use"}, kInfo);
  if (!merged_.empty() && (isRejected || isLocal)) {
    use_ = "rejected";
    isStored_ = false;
    // Of the others nothing is known: they were merged into one that is not valid.
    rejected_ = std::exchange(merged_, {});
  }
  result.timingCache = use_;
  result.timingCachesMerged = merged_;
  result.timingCachesRejected = rejected_;
}

}  // namespace trtforge
