// A stand-in for libcuda: one GPU, or none, as the test wishes.
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {
bool wished(const char* what) {
  const char* value = std::getenv("STANDIN_GPU");
  return value != nullptr && std::strcmp(value, what) == 0;
}
}  // namespace

extern "C" {

int cuInit(unsigned) { return wished("broken") ? 999 : 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = wished("none") ? 0 : 1, 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int length, int) { return std::strncpy(name, "NVIDIA Stand-in", static_cast<std::size_t>(length)), 0; }
int cuDeviceGetUuid(unsigned char* bytes, int) {
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(i * 17);
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t{150} << 30, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132, 0; }
int cuGetErrorString(int, const char** text) { return *text = "unknown error", 0; }

}
