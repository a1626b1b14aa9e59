// The builder's configuration: calls by name, as JavaScript resolved them from the recipe.
#pragma once
#include <vector>

#include "library.hpp"
#include "listeners.hpp"
#include "request.hpp"

namespace trtforge {

// Throws TF_LIBRARY_TOO_OLD for a call this version lacks, TF_OPTION_UNSUPPORTED for a value the library rejects.
void applySettings(const InferenceLibrary& library, const Facade& config, const std::vector<Setting>& settings,
                   Listener& listener);

// tensorrt-rtx: the GPUs to build for. Throws TF_TARGET_UNSUPPORTED.
void setComputeCapabilities(const Facade& config, const std::vector<std::int64_t>& capabilities, Listener& listener);

}  // namespace trtforge
