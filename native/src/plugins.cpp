#include "plugins.hpp"

namespace trtforge {

void initialiseStandardPlugins(const InferenceLibrary& library, const std::string& path, Listener& listener) {
  if (path.empty()) return;
  try {
    const SharedLibrary shared = SharedLibrary::open(path);
    if (!shared.symbol<bool (*)(void*, const char*)>("initLibNvInferPlugins")(loggerFor(library), ""))
      listener.log(kWarning, (path + " could not register its plug-ins.").c_str());
  } catch (const Failure& failure) {
    listener.log(kWarning, (failure.message + " Models that need its plug-ins will not build.").c_str());
  }
}

Plugins::Plugins(const InferenceLibrary& library, const Facade& owner, const RegistryOf& registryOf,
                 const std::vector<std::string>& paths, Listener& listener)
    : library_(library) {
  if (paths.empty()) return;
  registry_ = owner.call(registryOf);
  for (const std::string& path : paths) {
    void* handle = library.call(registry_, Slot::IPluginRegistry_loadLibrary_1, path.c_str());
    if (handle == nullptr) {
      release();
      throw listener.failure("TF_LIBRARY_LOAD_FAILED", path + " could not be loaded as a plug-in library.");
    }
    handles_.push_back(handle);
  }
}

Plugins::~Plugins() { release(); }

void Plugins::release() {
  for (void* handle : handles_) library_.call(registry_, Slot::IPluginRegistry_deregisterLibrary_1, handle);
  handles_.clear();
}

}  // namespace trtforge
