// A plan on its way from the disk to the library, without a copy of the whole file in memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "files.hpp"
#include "library.hpp"

namespace trtforge {

// What loading a plan took.
struct LoadCost {
  // Inside our reader; nothing where the library reads a mapped file itself.
  std::optional<double> readMs;
  double deserializeMs = 0;  // without `readMs`
  // By how many bytes this process grew: at most, and then in private and in mapped memory.
  struct HostMemory {
    std::int64_t peak = 0, anonymous = 0, mapped = 0;
  };
  std::optional<HostMemory> hostMemory;
};

class PlanFile {
 public:
  // Throws TF_FILE_UNREADABLE; TF_PLAN_INVALID where the file does not start like a plan of the library's product.
  PlanFile(const std::string& path, const InferenceLibrary& library);

  std::size_t size() const { return file_.size(); }
  // The ICudaEngine, empty where the library rejects the plan. Throws TF_FILE_UNREADABLE for a file that became shorter
  // or that somebody wrote to.
  Owned deserialize(const Facade& runtime, LoadCost& cost);

 private:
  InputFile file_;
  const InferenceLibrary& library_;
};

}  // namespace trtforge
