// In f64 too codes and scales go through f32, so that both precisions write the same codes.
#include <algorithm>
#include <array>

#include "base/dynamic_map.h"
#include "base/units.h"
#include "exec/cpu/kernels/adamw_step.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/fp8_numbers.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kLargestBlock = 256;

template <class T>
using BlockOf = std::array<T, kLargestBlock>;

template <class T>
float largest_of(const BlockOf<T>& x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = larger_magnitude(largest, static_cast<float>(x[static_cast<size_t>(i)]));
  return largest;
}

// Codes with the scale of their block, at their addresses.
template <class T>
struct Codes {
  uint8_t* codes;
  T* absmax;
  const DynamicMap& map;

  void load(int64_t n, BlockOf<T>& into) const {
    for (int64_t i = 0; i < n; ++i) into[static_cast<size_t>(i)] = static_cast<T>(map.value[codes[i]]) * *absmax;
  }

  template <class Encode>
  void store(int64_t n, const BlockOf<T>& from, const Encode& encode) const {
    float largest = largest_of(from, n), divisor = largest > 0 ? largest : 1;
    *absmax = static_cast<T>(largest);
    for (int64_t i = 0; i < n; ++i)
      codes[i] = encode(map.value, static_cast<float>(from[static_cast<size_t>(i)]) / divisor);
  }
};

template <class T>
void step_row(const KernelCall& call, const AdamwRow<T>& step, int64_t row, int64_t columns) {
  int64_t block = call.attrs.integer("block"), blocks = ceil_div(columns, block);
  bool rounds_weight = call.attrs.integer_or("round_weight", 0) != 0;
  RoundingWords words(call.attrs, *call.in[6].as<int32_t>());
  BlockOf<T> m, v;
  for (int64_t column = 0; column < columns; column += block) {
    int64_t n = std::min(block, columns - column), at = row * columns + column, scale = row * blocks + column / block;
    Codes<T> firsts{call.out[1].as<uint8_t>() + at, call.out[3].as<T>() + scale, kSignedMap};
    Codes<T> seconds{call.out[2].as<uint8_t>() + at, call.out[4].as<T>() + scale, kPositiveMap};
    firsts.load(n, m);
    seconds.load(n, v);
    AdamwRow<T> own = adamw_part(call, step, at, m.data(), v.data());
    adamw_row(own, n);
    firsts.store(n, m, nearest_code);
    seconds.store(n, v, nearest_code_above_zero);
    if (!rounds_weight) continue;
    for (int64_t i = 0; i < n; ++i)
      own.p[i] = rounded_at_random(own.p[i], words.at(words.place_of(call.in[0], row, column + i)).weight);
  }
}

void run_adamw_int8(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    AdamwRow<T> step = adamw_step_of<T>(call);
    if (step.scale == 0) return;
    WeightRows weight(call.out[0].shape);
    for_blocks(call.team, weight.rows, rows_per_task(weight.columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) step_row<T>(call, step, row, weight.columns);
    });
  });
}

}  // namespace

const CpuKernel adamw_int8{.run = run_adamw_int8};

}  // namespace sextant::cpu
