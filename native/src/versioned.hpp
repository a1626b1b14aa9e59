// The start of every versioned interface that this side passes to the library; the compiler lays its table out as it
// did for TensorRT.
#pragma once
#include <cstdint>

namespace trtforge {

// What getInterfaceInfo returns.
struct InterfaceInfo {
  const char* kind;
  std::int32_t major;
  std::int32_t minor;
};

class Versioned {
 public:
  virtual std::int32_t getAPILanguage() const noexcept { return 0; }
  virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
  virtual ~Versioned() noexcept = default;
};

}  // namespace trtforge
