#include "ort_library.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

namespace trtforge::ort {

namespace {

// What OrtGetApiBase returns.
struct ApiBase {
  void* const* (*getApi)(std::uint32_t version);
  const char* (*getVersionString)();
};

constexpr int kErrorsAlone = 3;

}  // namespace

const Library& Library::at(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Library>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& library = known[path];
  if (library == nullptr) library.reset(new Library(path));
  return *library;
}

Library::Library(const std::string& path) : shared_(SharedLibrary::open(path)) {
  const auto* base = shared_.symbol<const ApiBase* (*)()>("OrtGetApiBase")();
  version_ = base->getVersionString();
  const std::size_t dot = version_.find('.');
  const int major = std::atoi(version_.c_str());
  minor_ = dot == std::string::npos ? 0 : std::atoi(version_.c_str() + dot + 1);
  const std::string needed = "1." + std::to_string(kOldestMinor);
  if (major != 1 || minor_ < kOldestMinor)
    throw Failure("TF_LIBRARY_TOO_OLD",
                  path + " is ONNX Runtime " + version_ + "; it needs version " + needed + " or a newer 1.x.");
  // Asked for the loaded minor version alone: a number it does not have makes it print to stderr.
  table_ = base->getApi(static_cast<std::uint32_t>(minor_));
  if (table_ == nullptr)
    throw Failure("TF_LIBRARY_LOAD_FAILED",
                  path + " (ONNX Runtime " + version_ + ") has no table of functions for its own version.");
  environment_ = made(Slot::CreateEnv, std::int32_t{kErrorsAlone}, "trtforge");
}

void* Library::place(const AnyFunction& function) const {
  if (has(function)) return table_[function.index];
  throw Failure("TF_LIBRARY_TOO_OLD", std::string(function.name) + " is not in ONNX Runtime " + version_ +
                                          "; it needs version 1." + std::to_string(function.since) + ".");
}

void Library::fail(void* status) const {
  Failure failure("TF_ONNXRUNTIME_FAILED", call(Slot::GetErrorMessage, status));
  failure.numbers.emplace_back("onnxRuntimeCode", call(Slot::GetErrorCode, status));
  call(Slot::ReleaseStatus, status);
  throw failure;
}

}  // namespace trtforge::ort
