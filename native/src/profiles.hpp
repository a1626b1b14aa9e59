// Optimization profiles: checked against the network first, so that a wrong one is our sentence and not a failed build.
#pragma once
#include <vector>

#include "network.hpp"

namespace trtforge {

// Throws TF_PROFILE_INVALID that names the profile, the input and what does not fit.
void checkProfiles(const std::vector<std::vector<ProfileInput>>& profiles, const std::vector<NetworkTensor>& inputs);

// The profiles to build with: those asked for. TensorRT 8.6 forgets the shapes of fixed inputs, and then cannot run the
// engine, where an output's shape depends on the data and there is no profile at all: such a network gets one that
// states what is fixed anyway.
std::vector<std::vector<ProfileInput>> profilesToBuild(const InferenceLibrary& library,
                                                       const std::vector<std::vector<ProfileInput>>& profiles,
                                                       const std::vector<NetworkTensor>& inputs,
                                                       const std::vector<NetworkTensor>& outputs);

// Adds every profile to the configuration. Throws TF_PROFILE_INVALID where the library rejects one.
void addProfiles(const InferenceLibrary& library, const Facade& builder, const Facade& config,
                 const std::vector<std::vector<ProfileInput>>& profiles, Listener& listener);

}  // namespace trtforge
