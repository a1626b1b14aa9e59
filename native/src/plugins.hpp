// Plug-in libraries: TensorRT's own, and the user's, which a registry loads and lets go again.
#pragma once
#include <string>
#include <vector>

#include "library.hpp"
#include "listeners.hpp"

namespace trtforge {

// Registers the plug-ins of libnvinfer_plugin. One that does not load (8.6's needs cuDNN) is a warning: a model without
// plug-ins builds without it.
void initialiseStandardPlugins(const InferenceLibrary& library, const std::string& path, Listener& listener);

// The function of a builder or a runtime that returns its registry.
using RegistryOf = std::remove_const_t<decltype(Slot::IBuilder_getPluginRegistry_0)>;

// User libraries, loaded into a registry for as long as this lives.
class Plugins {
 public:
  // `owner` has getPluginRegistry at `slot`. Throws TF_LIBRARY_LOAD_FAILED that names the library.
  Plugins(const InferenceLibrary& library, const Facade& owner, const RegistryOf& registryOf,
          const std::vector<std::string>& paths, Listener& listener);
  ~Plugins();
  Plugins(const Plugins&) = delete;
  Plugins& operator=(const Plugins&) = delete;

 private:
  void release();

  const InferenceLibrary& library_;
  void* registry_ = nullptr;
  std::vector<void*> handles_;
};

}  // namespace trtforge
