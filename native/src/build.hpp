// From an ONNX file to a plan on disk.
#pragma once
#include "listeners.hpp"
#include "request.hpp"

namespace trtforge {

// Blocks for as long as the library builds; call it off the event loop. Throws Failure.
BuildResult build(const BuildRequest& request, Listener& listener);

// Libraries are loaded once per process and kept.
const InferenceLibrary& inferenceLibrary(const std::string& path);

}  // namespace trtforge
