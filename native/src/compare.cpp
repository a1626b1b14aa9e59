// A chunk of pairs of numbers measured as `measureChunk` of src/formats/tensor/compare/pair-sums.ts does, but for the
// order of additions. Plain loops that the compiler makes vectors of; it may not contract a product and a sum, which
// would round once instead of twice (flags in scripts/build-native.mjs).
#include "compare.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "values.hpp"

namespace trtforge {

namespace {

// Sums in so many parts that the compiler makes vectors of them.
constexpr int kLanes = 4;
// `sumSlots`, `KEY_FRACTION` and `ZERO_REFERENCE` there.
constexpr std::size_t kPairSums = 19;
constexpr int kKeyFraction = 8;
constexpr double kZeroReference = 2.220446049250313e-16;

template <class T>
struct Side {
  double sum = 0;
  double squares = 0;
  T min;
  T max;
};

template <class T>
Side<T> sideOf(const T* values, std::size_t count) {
  double sums[kLanes] = {}, squares[kLanes] = {};
  T mins[kLanes], maxs[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    mins[lane] = std::numeric_limits<T>::infinity();
    maxs[lane] = -std::numeric_limits<T>::infinity();
  }
  const auto add = [&](int lane, T value) {
    const double wide = value;
    sums[lane] += wide;
    squares[lane] += wide * wide;
    mins[lane] = value < mins[lane] ? value : mins[lane];
    maxs[lane] = value > maxs[lane] ? value : maxs[lane];
  };
  std::size_t at = 0;
  for (; at + kLanes <= count; at += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) add(lane, values[at + lane]);
  for (; at < count; ++at) add(0, values[at]);
  Side<T> side{0, 0, mins[0], maxs[0]};
  for (int lane = 0; lane < kLanes; ++lane) {
    side.sum += sums[lane];
    side.squares += squares[lane];
    side.min = mins[lane] < side.min ? mins[lane] : side.min;
    side.max = maxs[lane] > side.max ? maxs[lane] : side.max;
  }
  return side;
}

template <class T>
struct ChunkOfPairs {
  const T* candidate;
  const T* reference;
  // Both errors of each pair are written here.
  T* absolute;
  T* relative;
  // Fewer than 2^32.
  std::size_t count;
  double* sums;
  double absoluteTolerance;
  double relativeTolerance;
  // Counts of both errors by key that are added to; null where they are not requested.
  double* absoluteKeys;
  double* relativeKeys;
};

template <class T>
struct Pattern;
template <>
struct Pattern<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23;
  static constexpr std::size_t kExponents = 256;
};
template <>
struct Pattern<double> {
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52;
  static constexpr std::size_t kExponents = 2048;
};

// Counts errors by key: the upper bits of their pattern, rounded up to kKeyFraction bits of the fraction.
template <class T>
void countKeys(const T* errors, std::size_t count, double* counts) {
  using Bits = typename Pattern<T>::Bits;
  constexpr int dropped = Pattern<T>::kFraction - kKeyFraction;
  constexpr Bits added = (Bits(1) << dropped) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, &errors[i], sizeof bits);
    counts[(bits + added) >> dropped] += 1;
  }
}

// False, with nothing counted, where a number is not finite.
template <class T>
bool measureChunk(const ChunkOfPairs<T>& chunk) {
  const T* __restrict const candidate = chunk.candidate;
  const T* __restrict const reference = chunk.reference;
  T* __restrict const absolute = chunk.absolute;
  T* __restrict const relative = chunk.relative;
  const std::size_t count = chunk.count;
  std::vector<T> excesses(count);
  T* __restrict const beyond = excesses.data();
  const T allowed = static_cast<T>(chunk.absoluteTolerance);
  const T slope = static_cast<T>(chunk.relativeTolerance);
  std::uint32_t outside = 0, beyondBoth = 0, zeros = 0, odd = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const T size = std::fabs(reference[i]);
    const T error = std::fabs(candidate[i] - reference[i]);
    const T ratio = error / (size == 0 ? static_cast<T>(kZeroReference) : size);
    const T excess = error - slope * size;
    absolute[i] = error;
    relative[i] = ratio;
    beyond[i] = excess;
    outside += excess > allowed ? 1 : 0;
    beyondBoth += (error > allowed ? 1 : 0) & (ratio > slope ? 1 : 0);
    zeros += error == 0 ? 1 : 0;
    odd += (candidate[i] - candidate[i] == 0 ? 0 : 1) | (reference[i] - reference[i] == 0 ? 0 : 1);
  }
  if (odd > 0) return false;
  const Side<T> ours = sideOf(candidate, count);
  const Side<T> theirs = sideOf(reference, count);
  const Side<T> errors = sideOf(absolute, count);
  const Side<T> ratios = sideOf(relative, count);
  // In the order of `sumSlots` in pair-sums.ts.
  const double sums[kPairSums] = {static_cast<double>(count),
                                  ours.sum,
                                  ours.squares,
                                  ours.min,
                                  ours.max,
                                  theirs.sum,
                                  theirs.squares,
                                  theirs.min,
                                  theirs.max,
                                  errors.sum,
                                  errors.squares,
                                  errors.max,
                                  ratios.sum,
                                  ratios.squares,
                                  ratios.max,
                                  sideOf(excesses.data(), count).max,
                                  static_cast<double>(outside),
                                  static_cast<double>(beyondBoth),
                                  static_cast<double>(zeros)};
  std::memcpy(chunk.sums, sums, sizeof sums);
  if (chunk.absoluteKeys != nullptr) {
    countKeys<T>(absolute, count, chunk.absoluteKeys);
    countKeys<T>(relative, count, chunk.relativeKeys);
  }
  return true;
}

// The binding.

struct View {
  napi_typedarray_type type;
  std::size_t length;
  void* data;
};

View viewOf(const Napi::Value& value) {
  if (!value.IsTypedArray()) throw Failure("TF_INTERNAL", "A comparison is of typed arrays.");
  const auto array = value.As<Napi::TypedArray>();
  return {array.TypedArrayType(), array.ElementLength(), js::bytesOf(value).data};
}

template <class T>
bool measureViews(const std::array<View, 4>& numbers, const View& sums, double absoluteTolerance,
                  double relativeTolerance, const View& keys) {
  const std::size_t count = numbers[0].length;
  const std::size_t tables = Pattern<T>::kExponents << kKeyFraction;
  bool fits =
      sums.type == napi_float64_array && sums.length == kPairSums && count <= std::numeric_limits<std::uint32_t>::max();
  for (const View& view : numbers) fits = fits && view.type == numbers[0].type && view.length >= count;
  fits = fits && keys.type == napi_float64_array && (keys.length == 0 || keys.length == 2 * tables);
  if (!fits) throw Failure("TF_INTERNAL", "The arrays of a comparison do not belong together.");
  double* const absoluteKeys = keys.length == 0 ? nullptr : static_cast<double*>(keys.data);
  return measureChunk(ChunkOfPairs<T>{static_cast<const T*>(numbers[0].data), static_cast<const T*>(numbers[1].data),
                                      static_cast<T*>(numbers[2].data), static_cast<T*>(numbers[3].data), count,
                                      static_cast<double*>(sums.data), absoluteTolerance, relativeTolerance,
                                      absoluteKeys, absoluteKeys == nullptr ? nullptr : absoluteKeys + tables});
}

Napi::Value measureChunkExport(const Napi::CallbackInfo& info) {
  const auto view = [&](std::size_t at) { return viewOf(info[at]); };
  const std::array<View, 4> numbers = {view(0), view(1), view(2), view(3)};
  const auto type = numbers[0].type;
  if (type != napi_float64_array && type != napi_float32_array)
    throw Failure("TF_INTERNAL", "A comparison is of float32 or float64.");
  const auto measure = type == napi_float64_array ? measureViews<double> : measureViews<float>;
  return Napi::Boolean::New(
      info.Env(), measure(numbers, view(4), js::Reader(info[5]).number(), js::Reader(info[6]).number(), view(7)));
}

}  // namespace

void addCompareExport(Napi::Object& exports) { js::add<measureChunkExport>(exports, "measureChunk"); }

}  // namespace trtforge
