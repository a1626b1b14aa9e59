#include "library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

namespace trtforge {

SharedLibrary SharedLibrary::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* stated = dlerror();
    std::string why = stated == nullptr ? "the loader states no reason" : stated;
    // The loader begins with the name again.
    if (const std::string named = path + ": "; why.rfind(named, 0) == 0) why.erase(0, named.size());
    throw Failure("TF_LIBRARY_LOAD_FAILED", path + " cannot be loaded: " + why + ".");
  }
  return SharedLibrary(path, handle);
}

void* SharedLibrary::find(const char* name) const noexcept { return dlsym(handle_, name); }

void* SharedLibrary::required(const char* name) const {
  void* symbol = find(name);
  if (symbol == nullptr)
    throw Failure("TF_LIBRARY_LOAD_FAILED",
                  path_ + " has no function " + name + ": it is not the library expected here.");
  return symbol;
}

std::string SharedLibrary::exportedNameAfter(const char* prefix) const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  const char* names = nullptr;
  std::size_t size = 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRSZ) size = entry->d_un.d_val;
  }
  const std::size_t length = std::strlen(prefix);
  for (const char* name = names; names != nullptr && name < names + size; name += std::strlen(name) + 1)
    if (std::strncmp(name, prefix, length) == 0) return name + length;
  return "";
}

namespace {

// TensorRT up to 9 counts 8.6.1 as 8601, from 10 on as 100601; tensorrt-rtx 1.7.1 is 10701. The three ranges do not
// meet.
struct Numbers {
  int major, minor, patch;
};

Numbers numbersOf(std::int32_t code) {
  if (code < 10000) return {code / 1000, code / 100 % 10, code % 100};
  return {code / 10000, code / 100 % 100, code % 100};
}

Generation generationOf(bool rtx, Numbers version) {
  if (rtx) return version.major == 1 && version.minor >= 7 ? Generation::kRtx1 : Generation::kUnknown;
  if (version.major == 8 && version.minor == 6) return Generation::k8;
  if (version.major == 10) return Generation::k10;
  return version.major == 11 ? Generation::k11 : Generation::kUnknown;
}

std::string shownVersion(std::int32_t comparable) {
  return std::to_string(comparable / 10000) + "." + std::to_string(comparable / 100 % 100) + "." +
         std::to_string(comparable % 100);
}

}  // namespace

InferenceLibrary::InferenceLibrary(const std::string& path)
    : shared_(SharedLibrary::open(path)),
      code_(shared_.symbol<std::int32_t (*)()>("getInferLibVersion")()),
      rtx_(code_ >= 10000 && code_ < 100000) {
  const Numbers numbers = numbersOf(code_);
  generation_ = generationOf(rtx_, numbers);
  comparable_ = numbers.major * 10000 + numbers.minor * 100 + numbers.patch;
  version_ = shownVersion(comparable_);
  if (auto build = reinterpret_cast<std::int32_t (*)()>(shared_.find("getInferLibBuildVersion"))) {
    version_ += "." + std::to_string(build());
    return;
  }
  // 8.6 has no such function, but exports its version as a name: tensorrt_version_8_6_1_6.
  std::string exported = shared_.exportedNameAfter("tensorrt_version_");
  const std::size_t last = exported.rfind('_');
  if (last != std::string::npos) version_ += "." + exported.substr(last + 1);
}

std::string InferenceLibrary::name() const { return (rtx_ ? "tensorrt-rtx " : "TensorRT ") + version_; }

void InferenceLibrary::requireTable() const {
  if (generation_ == Generation::kUnknown)
    throw Failure("TF_LIBRARY_UNSUPPORTED",
                  shared_.path() + " is " + name() + ", and trtforge has no table of its functions.");
}

bool InferenceLibrary::has(const AnyMethod& method) const noexcept {
  if (generation_ == Generation::kUnknown) return false;
  const Place& place = kFunctions[method.row].places[static_cast<int>(generation_)];
  return place.index >= 0 && comparable_ >= place.since && comparable_ != place.except;
}

int InferenceLibrary::place(const AnyMethod& method, unsigned generations) const {
  requireTable();
  const Function& function = kFunctions[method.row];
  const Place& place = function.places[static_cast<int>(generation_)];
  if (has(method)) {
    if ((generations >> static_cast<int>(generation_) & 1) != 0) return place.index;
    throw Failure("TF_INTERNAL",
                  std::string(function.name) + " was to be called as another version than " + name() + " declares it.");
  }
  const std::string what = std::string(function.name) + " is not in " + name();
  if (place.index < 0) throw Failure("TF_LIBRARY_TOO_OLD", what + "; no version of its major has it.");
  if (comparable_ == place.except)
    throw Failure("TF_LIBRARY_TOO_OLD", what + " in the place it has in every other version; use another version.");
  throw Failure("TF_LIBRARY_TOO_OLD", what + "; it needs version " + shownVersion(place.since) + ".");
}

}  // namespace trtforge
