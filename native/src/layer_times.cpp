#include "layer_times.hpp"

#include <algorithm>
#include <mutex>

#include "versioned.hpp"

namespace trtforge {

// The library reports on whatever thread runs the engine.
class LayerTimes::Sums {
 public:
  void beginRun() {
    std::lock_guard<std::mutex> lock(mutex_);
    next_ = 0;
  }

  void add(const char* name, float ms) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto expected = layers_.begin() + static_cast<std::ptrdiff_t>(next_);
    // A layer that is not the next one was skipped up to by a condition, or appears for the first time.
    auto layer = std::find_if(expected, layers_.end(), [name](const LayerTime& other) { return other.name == name; });
    if (layer == layers_.end()) layer = layers_.insert(expected, LayerTime{name, 0, 0});
    layer->ms += ms;
    ++layer->runs;
    next_ = static_cast<std::size_t>(layer - layers_.begin()) + 1;
  }

  std::vector<LayerTime> table() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return layers_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LayerTime> layers_;
  std::size_t next_ = 0;
};

namespace {

// IProfiler of 8.6 and 10.x.
class PlainProfiler {
 public:
  explicit PlainProfiler(LayerTimes::Sums& sums) : sums_(sums) {}
  virtual void reportLayerTime(const char* name, float ms) noexcept { sums_.add(name == nullptr ? "" : name, ms); }
  virtual ~PlainProfiler() = default;

 private:
  LayerTimes::Sums& sums_;
};

// IProfiler of 11.x and tensorrt-rtx.
class VersionedProfiler : public Versioned {
 public:
  explicit VersionedProfiler(LayerTimes::Sums& sums) : sums_(sums) {}
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProfiler", 1, 0}; }
  virtual void reportLayerTime(const char* name, float ms) noexcept { sums_.add(name == nullptr ? "" : name, ms); }

 private:
  LayerTimes::Sums& sums_;
};

}  // namespace

struct LayerTimes::Profilers {
  explicit Profilers(Sums& sums) : plain(sums), versioned(sums) {}
  PlainProfiler plain;
  VersionedProfiler versioned;
};

LayerTimes::LayerTimes(const InferenceLibrary& library)
    : sums_(std::make_unique<Sums>()),
      profilers_(std::make_unique<Profilers>(*sums_)),
      versioned_(library.generation() != Generation::k8 && library.generation() != Generation::k10) {}

LayerTimes::~LayerTimes() = default;

void* LayerTimes::profiler() const {
  return versioned_ ? static_cast<void*>(&profilers_->versioned) : static_cast<void*>(&profilers_->plain);
}

void LayerTimes::beginRun() { sums_->beginRun(); }

std::vector<LayerTime> LayerTimes::table() const { return sums_->table(); }

}  // namespace trtforge
