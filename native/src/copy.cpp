#include "copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trtforge {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kVector = 32, kUnrolled = 4, kStep = kUnrolled * kVector;

__attribute__((target("avx2"))) void stream(char* to, const char* from, std::size_t bytes) {
  const auto* read = reinterpret_cast<const __m256i*>(from);
  auto* write = reinterpret_cast<__m256i*>(to);
  for (const auto* end = reinterpret_cast<const __m256i*>(from + bytes); read < end;
       read += kUnrolled, write += kUnrolled) {
    const __m256i a = _mm256_loadu_si256(read), b = _mm256_loadu_si256(read + 1), c = _mm256_loadu_si256(read + 2),
                  d = _mm256_loadu_si256(read + 3);
    _mm256_stream_si256(write, a);
    _mm256_stream_si256(write + 1, b);
    _mm256_stream_si256(write + 2, c);
    _mm256_stream_si256(write + 3, d);
  }
  // The GPU must see them before it is instructed to read.
  _mm_sfence();
}

}  // namespace

void copyPastCaches(char* to, const char* from, std::size_t bytes) {
  static const bool can = __builtin_cpu_supports("avx2") != 0;
  const std::size_t head = (kVector - reinterpret_cast<std::uintptr_t>(to) % kVector) % kVector;
  if (!can || bytes < head + kStep) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t body = (bytes - head) / kStep * kStep;
  std::memcpy(to, from, head);
  stream(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

#else

void copyPastCaches(char* to, const char* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace trtforge
