// Other weights for an engine that is loaded, read from an ONNX file by the library's parser.
#pragma once
#include <string>
#include <vector>

#include "engine.hpp"

namespace trtforge {

struct RefitRequest {
  std::string parserLibrary, modelPath;
  // Weights whose values are not those that the engine was built with.
  std::vector<std::string> changed;
};

// Nothing of the engine may run meanwhile. Throws TF_ENGINE_NOT_REFITTABLE, TF_REFIT_MODEL_MISMATCH where a changed
// weight is none that the engine can take, TF_REFIT_FAILED; after the last `halfRefitted` may be set.
void refit(Engine& engine, const RefitRequest& request, Listener& listener);

// Writes the engine as it is now to a file; `flags` are bits of SerializationFlag. Returns its bytes. Throws TF_REFIT_FAILED,
// TF_WRITE_FAILED.
std::int64_t serialize(const Engine& engine, const std::string& planPath, std::uint32_t flags, Listener& listener);

}  // namespace trtforge
