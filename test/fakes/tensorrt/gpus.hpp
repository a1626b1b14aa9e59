// The GPUs of the fake machine, as libcuda and NVML both know them: FAKE_GPUS of them (one unless told), each with a name and a UUID of its own.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

namespace fake {

inline const char* setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

inline int machineGpus() {
  static const int count = std::atoi(setting("FAKE_GPUS", "1"));
  return count;
}

// The first byte tells which.
inline void uuidBytes(int index, unsigned char* bytes) {
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(i * 17);
  bytes[0] = static_cast<unsigned char>(index);
}

// GPU-00112233-4455-6677-8899-aabbccddeeff
inline std::string uuidText(int index) {
  unsigned char bytes[16];
  uuidBytes(index, bytes);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", bytes[i]);
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(hex);
  }
  return text;
}

inline std::string gpuName(int index) { return "NVIDIA Fake" + (index == 0 ? "" : " " + std::to_string(index)); }

}  // namespace fake
