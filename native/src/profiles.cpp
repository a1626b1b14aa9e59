#include "profiles.hpp"

#include <algorithm>

#include "dims.hpp"
#include "tensors.hpp"

namespace trtforge {

namespace {

enum Selector { kMin = 0, kOpt = 1, kMax = 2 };

bool isOpen(const NetworkTensor& tensor) {
  return std::any_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t dimension) { return dimension < 0; });
}

[[noreturn]] void reject(std::size_t profile, const std::string& what) {
  throw Failure("TF_PROFILE_INVALID", "Profile " + std::to_string(profile) + ": " + what);
}

std::string namesOf(const std::vector<NetworkTensor>& inputs) {
  std::string names;
  for (const NetworkTensor& input : inputs)
    names += (names.empty() ? "" : ", ") + input.name + " " + shown(input.shape);
  return names;
}

/// `k=1/1/1`, as `--profile` takes it, with as many values as the shape tensor has.
std::string valuesExample(const NetworkTensor& input) {
  std::string values = "1";
  const std::int64_t count = input.shape.empty() ? 1 : std::min<std::int64_t>(input.shape[0], Dims64::kMax);
  for (std::int64_t i = 1; i < count; ++i) values += "x1";
  return input.name + "=" + values + "/" + values + "/" + values;
}

void checkOrder(std::size_t profile, const ProfileInput& range) {
  const bool sameRank = range.min.size() == range.opt.size() && range.opt.size() == range.max.size();
  if (!sameRank)
    reject(profile, "min " + shown(range.min) + ", opt " + shown(range.opt) + " and max " + shown(range.max) + " of " +
                        range.input + " differ in rank.");
  for (std::size_t i = 0; i < range.min.size(); ++i) {
    if (range.min[i] > range.opt[i])
      reject(profile, "min " + shown(range.min) + " of " + range.input + " is above opt " + shown(range.opt) + ".");
    if (range.opt[i] > range.max[i])
      reject(profile, "opt " + shown(range.opt) + " of " + range.input + " is above max " + shown(range.max) + ".");
  }
}

void checkRange(std::size_t profile, const ProfileInput& range, const NetworkTensor& input) {
  checkOrder(profile, range);
  if (range.values) {
    if (!input.shapeTensor)
      reject(profile, range.input + " is passed as values but is not a shape tensor of the model.");
    return;
  }
  if (range.min.size() != input.shape.size())
    reject(profile, range.input + " has " + std::to_string(range.min.size()) + " dimensions here (" + shown(range.opt) +
                        ") and " + std::to_string(input.shape.size()) + " in the model (" + shown(input.shape) + ").");
  if (input.shape.size() > Dims64::kMax) reject(profile, range.input + " has more than eight dimensions.");
  for (std::size_t i = 0; i < input.shape.size(); ++i)
    if (input.shape[i] >= 0 && (range.min[i] != input.shape[i] || range.max[i] != input.shape[i]))
      reject(profile, "dimension " + std::to_string(i) + " of " + range.input + " is fixed at " +
                          std::to_string(input.shape[i]) + " in the model (" + shown(input.shape) + ") but goes from " +
                          std::to_string(range.min[i]) + " to " + std::to_string(range.max[i]) + " here.");
}

void setDimensions(const InferenceLibrary& library, const Facade& profile, std::size_t number,
                   const ProfileInput& range, int selector, const std::vector<std::int64_t>& shape) {
  bool accepted;
  if (library.generation() == Generation::k8) {
    accepted = profile.call(declaredIn<Generation::k8>(Slot::IOptimizationProfile_setDimensions_3), range.input.c_str(),
                            selector, Dims32::from(shape));
  } else {
    const Dims64 dims = Dims64::from(shape);
    accepted = profile.call(declaredIn<Generation::k10>(Slot::IOptimizationProfile_setDimensions_3),
                            range.input.c_str(), selector, &dims);
  }
  if (!accepted) reject(number, "the library rejects " + shown(shape) + " for " + range.input + ".");
}

void setValues(const InferenceLibrary& library, const Facade& profile, std::size_t number, const ProfileInput& range,
               int selector, const std::vector<std::int64_t>& values) {
  const auto count = static_cast<std::int32_t>(values.size());
  bool accepted;
  if (library.has(Slot::IOptimizationProfile_setShapeValuesV2_4)) {
    accepted = profile.call(Slot::IOptimizationProfile_setShapeValuesV2_4, range.input.c_str(), selector, values.data(),
                            count);
  } else {
    const std::vector<std::int32_t> narrow(values.begin(), values.end());
    accepted =
        profile.call(Slot::IOptimizationProfile_setShapeValues_4, range.input.c_str(), selector, narrow.data(), count);
  }
  if (!accepted) reject(number, "the library rejects the values " + shown(values) + " for " + range.input + ".");
}

}  // namespace

void checkProfiles(const std::vector<std::vector<ProfileInput>>& profiles, const std::vector<NetworkTensor>& inputs) {
  for (std::size_t number = 0; number < profiles.size(); ++number) {
    for (const ProfileInput& range : profiles[number]) {
      const auto input = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const NetworkTensor& candidate) { return candidate.name == range.input; });
      if (input == inputs.end())
        reject(number, "the model has no input " + range.input + "; it has " + namesOf(inputs) + ".");
      checkRange(number, range, *input);
    }
  }
  for (const NetworkTensor& input : inputs) {
    if (!isOpen(input) && !input.shapeTensor) continue;
    const std::string wanted = input.shapeTensor
                                   ? "is a shape tensor, whose range is one of values (" + valuesExample(input) + ")"
                                   : "has open dimensions (" + shown(input.shape) + ")";
    if (profiles.empty())
      throw Failure("TF_PROFILE_INVALID", "Input " + input.name + " " + wanted + ", and there is no profile.");
    for (std::size_t number = 0; number < profiles.size(); ++number)
      if (std::none_of(profiles[number].begin(), profiles[number].end(),
                       [&](const ProfileInput& range) { return range.input == input.name; }))
        reject(number, "input " + input.name + " " + wanted + ", and has no range.");
  }
}

std::vector<std::vector<ProfileInput>> profilesToBuild(const InferenceLibrary& library,
                                                       const std::vector<std::vector<ProfileInput>>& profiles,
                                                       const std::vector<NetworkTensor>& inputs,
                                                       const std::vector<NetworkTensor>& outputs) {
  if (!profiles.empty() || library.generation() != Generation::k8 ||
      std::none_of(outputs.begin(), outputs.end(), isOpen))
    return profiles;
  std::vector<ProfileInput> fixed;
  for (const NetworkTensor& input : inputs) {
    ProfileInput range;
    range.input = input.name;
    range.min = range.opt = range.max = input.shape;
    fixed.push_back(std::move(range));
  }
  return {fixed};
}

void addProfiles(const InferenceLibrary& library, const Facade& builder, const Facade& config,
                 const std::vector<std::vector<ProfileInput>>& profiles, Listener& listener) {
  for (std::size_t number = 0; number < profiles.size(); ++number) {
    // The builder owns its profiles and frees them with itself.
    const Facade profile(library, builder.call(Slot::IBuilder_createOptimizationProfile_0));
    for (const ProfileInput& range : profiles[number]) {
      const auto set = range.values ? setValues : setDimensions;
      set(library, profile, number, range, kMin, range.min);
      set(library, profile, number, range, kOpt, range.opt);
      set(library, profile, number, range, kMax, range.max);
    }
    const bool valid = profile.call(Slot::IOptimizationProfile_isValid_0);
    if (!valid || config.call(Slot::IBuilderConfig_addOptimizationProfile_1, profile.get()) < 0)
      throw listener.failure("TF_PROFILE_INVALID",
                             "Profile " + std::to_string(number) + " is not one the library takes.");
  }
}

}  // namespace trtforge
