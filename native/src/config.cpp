#include "config.hpp"

#include <algorithm>
#include <iterator>

namespace trtforge {

namespace {

// The parameters a setter takes; each kind is one way to pass them.
enum class Takes { kInt32, kInt64, kUint32, kInt32Bool, kInt32Size };
// Whether it answers with a bool: always, since 11 only, never.
enum class Answers { kNever, kSince11, kAlways };

struct Setter {
  const char* name;
  Slot slot;
  Takes takes;
  Answers answers;
};

// How the library words, in a warning, that it passes over a setting.
const std::vector<std::string> kPassedOver = {"unsupported", "not supported", "has no effect", "ignored"};

constexpr Setter kSetters[] = {
    {"setFlag", Slot::IBuilderConfig_setFlag_1, Takes::kInt32, Answers::kNever},
    {"clearFlag", Slot::IBuilderConfig_clearFlag_1, Takes::kInt32, Answers::kNever},
    {"setMemoryPoolLimit", Slot::IBuilderConfig_setMemoryPoolLimit_2, Takes::kInt32Size, Answers::kNever},
    {"setBuilderOptimizationLevel", Slot::IBuilderConfig_setBuilderOptimizationLevel_1, Takes::kInt32, Answers::kNever},
    {"setMaxAuxStreams", Slot::IBuilderConfig_setMaxAuxStreams_1, Takes::kInt32, Answers::kSince11},
    {"setAvgTimingIterations", Slot::IBuilderConfig_setAvgTimingIterations_1, Takes::kInt32, Answers::kNever},
    {"setTilingOptimizationLevel", Slot::IBuilderConfig_setTilingOptimizationLevel_1, Takes::kInt32, Answers::kAlways},
    {"setMaxNbTactics", Slot::IBuilderConfig_setMaxNbTactics_1, Takes::kInt32, Answers::kNever},
    {"setL2LimitForTiling", Slot::IBuilderConfig_setL2LimitForTiling_1, Takes::kInt64, Answers::kAlways},
    {"setProfilingVerbosity", Slot::IBuilderConfig_setProfilingVerbosity_1, Takes::kInt32, Answers::kNever},
    {"setHardwareCompatibilityLevel", Slot::IBuilderConfig_setHardwareCompatibilityLevel_1, Takes::kInt32, Answers::kNever},
    {"setRuntimePlatform", Slot::IBuilderConfig_setRuntimePlatform_1, Takes::kInt32, Answers::kNever},
    {"setEngineCapability", Slot::IBuilderConfig_setEngineCapability_1, Takes::kInt32, Answers::kNever},
    {"setTacticSources", Slot::IBuilderConfig_setTacticSources_1, Takes::kUint32, Answers::kAlways},
    {"setPreviewFeature", Slot::IBuilderConfig_setPreviewFeature_2, Takes::kInt32Bool, Answers::kNever},
};

const Setter& setterNamed(const Setting& setting) {
  const auto found = std::find_if(std::begin(kSetters), std::end(kSetters), [&](const Setter& setter) { return setting.call == setter.name; });
  if (found == std::end(kSetters)) throw Failure("TF_INTERNAL", "The addon knows no setting " + setting.call + ".");
  const std::size_t wanted = found->takes == Takes::kInt32Bool || found->takes == Takes::kInt32Size ? 2 : 1;
  if (setting.arguments.size() != wanted) throw Failure("TF_INTERNAL", setting.call + " takes " + std::to_string(wanted) + " arguments.");
  return *found;
}

template <class Result>
Result invoke(const Facade& config, const Setter& setter, const std::vector<std::int64_t>& arguments) {
  const std::int64_t first = arguments[0];
  switch (setter.takes) {
    case Takes::kInt32: return config.call<Result>(setter.slot, static_cast<std::int32_t>(first));
    case Takes::kInt64: return config.call<Result>(setter.slot, first);
    case Takes::kUint32: return config.call<Result>(setter.slot, static_cast<std::uint32_t>(first));
    case Takes::kInt32Bool: return config.call<Result>(setter.slot, static_cast<std::int32_t>(first), arguments[1] != 0);
    case Takes::kInt32Size: break;
  }
  return config.call<Result>(setter.slot, static_cast<std::int32_t>(first), static_cast<std::size_t>(arguments[1]));
}

}  // namespace

void applySettings(const InferenceLibrary& library, const Facade& config, const std::vector<Setting>& settings, Listener& listener) {
  const bool answersLately = library.generation() == Generation::k11 || library.generation() == Generation::kRtx1;
  for (const Setting& setting : settings) {
    const Setter& setter = setterNamed(setting);
    const bool answers = setter.answers == Answers::kAlways || (setter.answers == Answers::kSince11 && answersLately);
    // Most setters answer nothing: what the library logs meanwhile is its answer.
    const Listener::Mark before = listener.mark();
    bool accepted = true;
    if (answers)
      accepted = invoke<bool>(config, setter, setting.arguments);
    else
      invoke<void>(config, setter, setting.arguments);
    const std::string complaint = listener.complaintSince(before, kPassedOver);
    if (!accepted || !complaint.empty())
      throw Failure("TF_OPTION_UNSUPPORTED", library.name() + " refuses the " + setting.option + (complaint.empty() ? "." : ": " + complaint));
  }
}

void setComputeCapabilities(const Facade& config, const std::vector<std::int64_t>& capabilities, Listener& listener) {
  if (capabilities.empty()) return;
  const auto count = static_cast<std::int32_t>(capabilities.size());
  if (!config.call<bool>(Slot::IBuilderConfig_setNbComputeCapabilities_1, count))
    throw listener.failure("TF_TARGET_UNSUPPORTED", "The library does not build for " + std::to_string(count) + " compute capabilities at once.");
  for (std::int32_t i = 0; i < count; ++i) {
    const auto capability = static_cast<std::int32_t>(capabilities[static_cast<std::size_t>(i)]);
    if (!config.call<bool>(Slot::IBuilderConfig_setComputeCapability_2, capability, i))
      throw listener.failure("TF_TARGET_UNSUPPORTED", "The library does not build for sm_" + std::to_string(capability) + ".");
  }
}

}  // namespace trtforge
