#include "nvtx.hpp"

#include <cstdlib>

#include "listeners.hpp"

namespace trtforge::nvtx {

Profiler profiler;

namespace {

// Numbers and layouts of NVTX 3's public interface (nvtxTypes.h): what a profiler's library asks of a client.
using Function = void (*)();
constexpr std::uint32_t kCallbacks = 1, kVersionInfo = 3;
constexpr int kCore = 1, kRangeStartA = 5, kRangeEnd = 7, kRangePushA = 9, kRangePop = 11;
// One more than each module's last function: CORE, CUDA, OPENCL, CUDART, CORE2, SYNC.
constexpr unsigned kSizes[] = {0, 16, 9, 15, 7, 16, 7};
constexpr int kModules = sizeof kSizes / sizeof *kSizes;

// The profiler writes its functions through the table. Every client of NVTX has all modules, so profilers get them all.
Function functions[kModules][16];
Function* tables[kModules][17];

int functionTable(int module, Function*** table, unsigned* size) {
  if (module < kCore || module >= kModules) return 0;
  for (unsigned i = 1; i < kSizes[module]; ++i) tables[module][i] = &functions[module][i];
  if (table != nullptr) *table = tables[module];
  if (size != nullptr) *size = kSizes[module];
  return 1;
}

struct Callbacks {
  std::size_t bytes = sizeof(Callbacks);
  int (*table)(int, Function***, unsigned*) = functionTable;
};

struct VersionInfo {
  std::size_t bytes = sizeof(VersionInfo);
  std::uint32_t version = 3, reserved = 0;
  void (*setProfilersVersion)(std::uint32_t) = [](std::uint32_t) {};
};

const void* exportTable(std::uint32_t id) {
  static const Callbacks callbacks;
  static const VersionInfo version;
  return id == kCallbacks ? static_cast<const void*>(&callbacks) : id == kVersionInfo ? &version : nullptr;
}

template <class Type>
Type* function(int slot) {
  return reinterpret_cast<Type*>(functions[kCore][slot]);
}

void load(const std::string& path) {
  using Initialise = int (*)(const void* (*)(std::uint32_t));
  if (SharedLibrary::open(path).symbol<Initialise>("InitializeInjectionNvtx2")(exportTable) == 0)
    throw Failure("TF_LIBRARY_LOAD_FAILED", path + " does not start: its InitializeInjectionNvtx2 returned 0.");
  profiler = {function<int(const char*)>(kRangePushA), function<int()>(kRangePop),
              function<std::uint64_t(const char*)>(kRangeStartA), function<void(std::uint64_t)>(kRangeEnd)};
}

}  // namespace

void attach(Listener& listener) {
  // Clients of NVTX look at nothing but this variable.
  static const bool looked = [&listener] {
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    if (path == nullptr || *path == 0) return true;
    try {
      load(path);
    } catch (const Failure& failure) {
      const std::string sentence =
          failure.message + " No profiler gets ranges: let NVTX_INJECTION64_PATH name its library, or unset it.";
      listener.log(kWarning, sentence.c_str());
    }
    return true;
  }();
  (void)looked;
}

}  // namespace trtforge::nvtx
