// A profiler's library as NVTX loads it, from NVTX_INJECTION64_PATH: appends what clients mark to the file NVTX_RECORD, a line each of fields between
// tabs: process, thread, what (attach, push, pop, start, end), domain, id, name. The functions that it takes are those that its clients call: of
// CORE (no domain) and CORE2. -DFAKE_REFUSES: it takes them, and then reports that it could not start. Numbers and layouts: nvtxTypes.h, nvToolsExt.h.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using Function = void (*)();
using GetExportTable = const void* (*)(std::uint32_t);
struct Callbacks {
  std::size_t bytes;
  int (*table)(int module, Function*** table, unsigned* size);
};
struct VersionInfo {
  std::size_t bytes;
  std::uint32_t version, reserved;
  void (*setInjectionVersion)(std::uint32_t);
};
struct Attributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t colorType;
  std::uint32_t color;
  std::int32_t payloadType, reserved;
  std::uint64_t payload;
  std::int32_t messageType;
  const void* message;
};
static_assert(sizeof(Attributes) == 48, "nvtxEventAttributes_v2");
constexpr std::int32_t kAscii = 1, kRegistered = 3;

void write(const char* what, const std::string& domain, std::uint64_t id, const std::string& name) {
  const char* path = std::getenv("NVTX_RECORD");
  const int file = path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  const std::string line = std::to_string(getpid()) + "\t" + std::to_string(syscall(SYS_gettid)) + "\t" + what + "\t" + domain + "\t" +
                           std::to_string(id) + "\t" + name + "\n";
  (void)!::write(file, line.data(), line.size());
  close(file);
}

std::atomic<std::uint64_t> ranges{0};

// Handles are texts that stay for ever.
const void* keep(const char* text) { return new std::string(text); }
std::string textOf(const void* handle) { return handle == nullptr ? "" : *static_cast<const std::string*>(handle); }
std::string nameOf(const Attributes* event) {
  if (event->messageType == kAscii) return static_cast<const char*>(event->message);
  return event->messageType == kRegistered ? textOf(event->message) : "";
}

std::uint64_t start(const std::string& domain, const std::string& name) {
  const std::uint64_t id = ++ranges;
  write("start", domain, id, name);
  return id;
}
std::uint64_t startEx(const Attributes* event) { return start("", nameOf(event)); }
std::uint64_t startA(const char* name) { return start("", name); }
void end(std::uint64_t id) { write("end", "", id, ""); }
int pushEx(const Attributes* event) { return write("push", "", 0, nameOf(event)), 0; }
int pushA(const char* name) { return write("push", "", 0, name), 0; }
int pop() { return write("pop", "", 0, ""), 0; }

std::uint64_t domainStart(const void* domain, const Attributes* event) { return start(textOf(domain), nameOf(event)); }
void domainEnd(const void* domain, std::uint64_t id) { write("end", textOf(domain), id, ""); }
int domainPush(const void* domain, const Attributes* event) { return write("push", textOf(domain), 0, nameOf(event)), 0; }
int domainPop(const void* domain) { return write("pop", textOf(domain), 0, ""), 0; }
const void* registerText(const void*, const char* text) { return keep(text); }

template <class Own>
void take(Function** table, int slot, Own* function) {
  *table[slot] = reinterpret_cast<Function>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(GetExportTable exportTable) {
  const auto* version = static_cast<const VersionInfo*>(exportTable(3));
  const auto* callbacks = static_cast<const Callbacks*>(exportTable(1));
  if (version == nullptr || version->bytes != sizeof(VersionInfo) || callbacks == nullptr || callbacks->bytes != sizeof(Callbacks)) return 0;
  version->setInjectionVersion(version->version);
  // A profiler may look at every place of every module, and a later client has more of both.
  std::string sizes;
  for (int module = 1; module <= 6; ++module) {
    Function** table = nullptr;
    unsigned size = 0;
    if (callbacks->table(module, &table, &size) != 1 || table[0] != nullptr) return 0;
    for (unsigned slot = 1; slot < size; ++slot) *table[slot] = nullptr;
    sizes += " " + std::to_string(size);
  }
  Function** core = nullptr;
  Function** core2 = nullptr;
  callbacks->table(1, &core, nullptr);
  callbacks->table(5, &core2, nullptr);
  take(core, 4, startEx);
  take(core, 5, startA);
  take(core, 7, end);
  take(core, 8, pushEx);
  take(core, 9, pushA);
  take(core, 11, pop);
  take(core2, 2, domainStart);
  take(core2, 3, domainEnd);
  take(core2, 4, domainPush);
  take(core2, 5, domainPop);
  take(core2, 10, registerText);
  take(core2, 12, keep);
#ifdef FAKE_REFUSES
  return 0;
#else
  write("attach", "", version->version, sizes.substr(1));
  return 1;
#endif
}
