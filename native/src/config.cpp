#include "config.hpp"

#include <algorithm>
#include <iterator>

namespace trtforge {

namespace {

// Passes numbers on as the function takes them; a setter that answers nothing accepts.
template <class Result, class... Taken, std::size_t... index>
bool pass(const Facade& config, const TypedMethod<Result(Taken...)>& method, const std::vector<std::int64_t>& numbers,
          std::index_sequence<index...>) {
  if constexpr (std::is_same_v<Result, bool>) return config.call(method, static_cast<Taken>(numbers[index])...);
  config.call(method, static_cast<Taken>(numbers[index])...);
  return true;
}
template <class Result, class... Taken>
bool pass(const Facade& config, const TypedMethod<Result(Taken...)>& method, const std::vector<std::int64_t>& numbers) {
  if (numbers.size() != sizeof...(Taken))
    throw Failure("TF_INTERNAL", "A setting takes " + std::to_string(sizeof...(Taken)) + " arguments.");
  return pass(config, method, numbers, std::index_sequence_for<Taken...>());
}

struct Setter {
  const char* name;
  bool (*set)(const Facade& config, const InferenceLibrary& library, const std::vector<std::int64_t>& numbers);
};

template <const auto& method>
bool setAlike(const Facade& config, const InferenceLibrary&, const std::vector<std::int64_t>& numbers) {
  return pass(config, agreed(method), numbers);
}
// It answers since 11 only.
bool setMaxAuxStreams(const Facade& config, const InferenceLibrary& library, const std::vector<std::int64_t>& numbers) {
  constexpr const auto& method = Slot::IBuilderConfig_setMaxAuxStreams_1;
  const bool early = library.generation() == Generation::k8 || library.generation() == Generation::k10;
  return early ? pass(config, declaredIn<Generation::k10>(method), numbers)
               : pass(config, declaredIn<Generation::k11>(method), numbers);
}

// How the library words, in a warning, that it passes over a setting.
const std::vector<std::string> kPassedOver = {"unsupported", "not supported", "has no effect", "ignored"};

constexpr Setter kSetters[] = {
    {"setFlag", setAlike<Slot::IBuilderConfig_setFlag_1>},
    {"clearFlag", setAlike<Slot::IBuilderConfig_clearFlag_1>},
    {"setMemoryPoolLimit", setAlike<Slot::IBuilderConfig_setMemoryPoolLimit_2>},
    {"setBuilderOptimizationLevel", setAlike<Slot::IBuilderConfig_setBuilderOptimizationLevel_1>},
    {"setMaxAuxStreams", setMaxAuxStreams},
    {"setAvgTimingIterations", setAlike<Slot::IBuilderConfig_setAvgTimingIterations_1>},
    {"setTilingOptimizationLevel", setAlike<Slot::IBuilderConfig_setTilingOptimizationLevel_1>},
    {"setMaxNbTactics", setAlike<Slot::IBuilderConfig_setMaxNbTactics_1>},
    {"setL2LimitForTiling", setAlike<Slot::IBuilderConfig_setL2LimitForTiling_1>},
    {"setProfilingVerbosity", setAlike<Slot::IBuilderConfig_setProfilingVerbosity_1>},
    {"setHardwareCompatibilityLevel", setAlike<Slot::IBuilderConfig_setHardwareCompatibilityLevel_1>},
    {"setRuntimePlatform", setAlike<Slot::IBuilderConfig_setRuntimePlatform_1>},
    {"setEngineCapability", setAlike<Slot::IBuilderConfig_setEngineCapability_1>},
    {"setTacticSources", setAlike<Slot::IBuilderConfig_setTacticSources_1>},
    {"setPreviewFeature", setAlike<Slot::IBuilderConfig_setPreviewFeature_2>},
};

const Setter& setterNamed(const Setting& setting) {
  const auto found = std::find_if(std::begin(kSetters), std::end(kSetters),
                                  [&](const Setter& setter) { return setting.call == setter.name; });
  if (found == std::end(kSetters)) throw Failure("TF_INTERNAL", "The addon knows no setting " + setting.call + ".");
  return *found;
}

}  // namespace

void applySettings(const InferenceLibrary& library, const Facade& config, const std::vector<Setting>& settings,
                   Listener& listener) {
  for (const Setting& setting : settings) {
    const Setter& setter = setterNamed(setting);
    // Most setters answer nothing: what the library logs meanwhile is its answer.
    const Listener::Mark before = listener.mark();
    const bool accepted = setter.set(config, library, setting.arguments);
    const std::string complaint = listener.complaintSince(before, kPassedOver);
    if (!accepted || !complaint.empty())
      throw Failure("TF_OPTION_UNSUPPORTED",
                    library.name() + " rejects the " + setting.option + (complaint.empty() ? "." : ": " + complaint));
  }
}

void setComputeCapabilities(const Facade& config, const std::vector<std::int64_t>& capabilities, Listener& listener) {
  if (capabilities.empty()) return;
  const auto count = static_cast<std::int32_t>(capabilities.size());
  if (!config.call(Slot::IBuilderConfig_setNbComputeCapabilities_1, count))
    throw listener.failure("TF_TARGET_UNSUPPORTED", "The library does not build for " + std::to_string(count) +
                                                        " compute capabilities at once.");
  for (std::int32_t i = 0; i < count; ++i) {
    const auto capability = static_cast<std::int32_t>(capabilities[static_cast<std::size_t>(i)]);
    if (!config.call(Slot::IBuilderConfig_setComputeCapability_2, capability, i))
      throw listener.failure("TF_TARGET_UNSUPPORTED",
                             "The library does not build for sm_" + std::to_string(capability) + ".");
  }
}

}  // namespace trtforge
