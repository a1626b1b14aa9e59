// The errors of rounding values to a grid, as `measureRounding` of src/formats/precision/quantize/rounding-errors.ts
// sums them up, bit for bit: lanes side by side become vectors, and each lane adds in the order of its rows. The
// compiler may not contract a product and a sum, which would round once instead of twice (scripts/build-native.mjs).
#include "rounding.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "values.hpp"

namespace trtforge {

namespace {

// Lanes that are copied together, those of one cache line, and that are summed up together, in registers.
constexpr int kColumns = 16;
constexpr int kLanes = 8;

#if defined(__x86_64__)
#define TRTFORGE_WIDE __attribute__((target("avx2")))
#else
#define TRTFORGE_WIDE
#endif

struct Grid {
  float share, step, lowest, highest;
};

// `rows` rows of kColumns values, of which kLanes are rounded.
template <bool shared>
inline __attribute__((always_inline)) void roundLanes(const float* __restrict tile, std::int64_t rows,
                                                      const float* __restrict reciprocals, const Grid& grid,
                                                      const float* __restrict mean, const float* __restrict variance,
                                                      float* __restrict squares, float* __restrict sums) {
  float ownSquares[kLanes] = {}, ownSums[kLanes] = {}, reciprocal[kLanes];
  std::memcpy(reciprocal, reciprocals, sizeof reciprocal);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float ofSquare = variance[row], ofError = mean[row];
    for (int lane = 0; lane < kLanes; ++lane) {
      const float scaled = tile[row * kColumns + lane] * reciprocal[lane];
      float steps = grid.step;
      if (shared) {
        std::uint32_t bits;
        std::memcpy(&bits, &scaled, sizeof bits);
        bits &= 0x7f800000u;
        float power;
        std::memcpy(&power, &bits, sizeof power);
        const float own = power * grid.share;
        steps = own > grid.step ? own : grid.step;
      }
      const float rounded = (scaled + steps) - steps;
      const float above = rounded < grid.lowest ? grid.lowest : rounded;
      const float error = (above > grid.highest ? grid.highest : above) - scaled;
      ownSquares[lane] += error * error * ofSquare;
      ownSums[lane] += error * ofError;
    }
  }
  std::memcpy(squares, ownSquares, sizeof ownSquares);
  std::memcpy(sums, ownSums, sizeof ownSums);
}

using Round = void (*)(const float*, std::int64_t, const float*, const Grid&, const float*, const float*, float*,
                       float*);

template <bool shared>
void roundPlain(const float* tile, std::int64_t rows, const float* reciprocals, const Grid& grid, const float* mean,
                const float* variance, float* squares, float* sums) {
  roundLanes<shared>(tile, rows, reciprocals, grid, mean, variance, squares, sums);
}

// The same operations, on twice as many lanes at once.
template <bool shared>
TRTFORGE_WIDE void roundWide(const float* tile, std::int64_t rows, const float* reciprocals, const Grid& grid,
                             const float* mean, const float* variance, float* squares, float* sums) {
  roundLanes<shared>(tile, rows, reciprocals, grid, mean, variance, squares, sums);
}

Round roundFor(const Grid& grid) {
#if defined(__x86_64__)
  static const bool isWide = __builtin_cpu_supports("avx2") != 0;
  if (isWide) return grid.share > 0 ? roundWide<true> : roundWide<false>;
#endif
  return grid.share > 0 ? roundPlain<true> : roundPlain<false>;
}

// In the order of `Tiles` in tiles.ts.
struct Tiles {
  std::int64_t first, laneStride, rowStride, lanes, rows, place;
};

struct Rounding {
  const float* values;
  Tiles tiles;
  std::int64_t clips;
  // By clip and lane, as both results are.
  const float* reciprocals;
  Grid grid;
  const float* mean;
  const float* variance;
  float* squares;
  float* sums;
};

void measureRounding(const Rounding& asked) {
  const auto& [first, laneStride, rowStride, lanes, rows, place] = asked.tiles;
  const Round round = roundFor(asked.grid);
  std::vector<float> tile(static_cast<std::size_t>(kColumns * rows));
  for (std::int64_t from = 0; from < lanes; from += kColumns) {
    const std::int64_t count = lanes - from < kColumns ? lanes - from : kColumns;
    const float* const start = asked.values + first + from * laneStride;
    for (std::int64_t row = 0; row < rows; ++row) {
      float* const target = tile.data() + row * kColumns;
      const float* const source = start + row * rowStride;
      if (laneStride == 1 && count == kColumns)
        std::memcpy(target, source, kColumns * sizeof(float));
      else
        for (std::int64_t lane = 0; lane < count; ++lane) target[lane] = source[lane * laneStride];
    }
    for (std::int64_t clip = 0; clip < asked.clips; ++clip) {
      const std::int64_t at = clip * lanes + from;
      float reciprocals[kColumns] = {}, squares[kColumns], sums[kColumns];
      std::memcpy(reciprocals, asked.reciprocals + at, static_cast<std::size_t>(count) * sizeof(float));
      for (int lane = 0; lane < kColumns; lane += kLanes) {
        round(tile.data() + lane, rows, reciprocals + lane, asked.grid, asked.mean + place, asked.variance + place,
              squares + lane, sums + lane);
      }
      std::memcpy(asked.squares + at, squares, static_cast<std::size_t>(count) * sizeof(float));
      std::memcpy(asked.sums + at, sums, static_cast<std::size_t>(count) * sizeof(float));
    }
  }
}

// The binding.

struct Floats {
  std::int64_t length;
  float* data;
};

Floats floatsOf(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array)
    throw Failure("TF_INTERNAL", "Errors of rounding are of float32.");
  return {static_cast<std::int64_t>(value.As<Napi::TypedArray>().ElementLength()),
          reinterpret_cast<float*>(js::bytesOf(value).data)};
}

Napi::Value measureRoundingExport(const Napi::CallbackInfo& info) {
  const Floats values = floatsOf(info[0]), reciprocals = floatsOf(info[2]), grid = floatsOf(info[3]);
  const Floats mean = floatsOf(info[4]), variance = floatsOf(info[5]);
  const Floats squares = floatsOf(info[6]), sums = floatsOf(info[7]);
  const js::Reader from(info[1]);
  const auto number = [&](const char* name) { return from[name].integer(); };
  const Tiles tiles = {number("first"), number("laneStride"), number("rowStride"),
                       number("lanes"), number("rows"),       number("place")};
  bool fits = grid.length == 4 && tiles.lanes > 0 && tiles.rows > 0 && tiles.first >= 0 && tiles.place >= 0 &&
              tiles.laneStride >= 0 && tiles.rowStride >= 0;
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t each : {tiles.first, tiles.laneStride, tiles.rowStride, tiles.lanes, tiles.rows, tiles.place})
    fits = fits && each <= most;
  fits = fits &&
         tiles.first + (tiles.lanes - 1) * tiles.laneStride + (tiles.rows - 1) * tiles.rowStride < values.length &&
         tiles.place + tiles.rows <= mean.length && tiles.place + tiles.rows <= variance.length &&
         reciprocals.length % tiles.lanes == 0 && squares.length >= reciprocals.length &&
         sums.length >= reciprocals.length;
  if (!fits) throw Failure("TF_INTERNAL", "The arrays of a rounding do not belong together.");
  measureRounding({values.data, tiles, reciprocals.length / tiles.lanes, reciprocals.data,
                   Grid{grid.data[0], grid.data[1], grid.data[2], grid.data[3]}, mean.data, variance.data, squares.data,
                   sums.data});
  return info.Env().Undefined();
}

}  // namespace

void addRoundingExport(Napi::Object& exports) { js::add<measureRoundingExport>(exports, "measureRounding"); }

}  // namespace trtforge
