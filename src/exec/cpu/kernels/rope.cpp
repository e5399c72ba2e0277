#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/amax.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"
#include "exec/rope_frequency.h"
#include "targets/cpu/rope_sizes.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

template <class T>
void fill_table(const KernelCall& call, const RopeTable& sizes, T* table) {
  int64_t dim = sizes.front, half = sizes.pairs();
  int64_t start = call.in.size() > 1 ? *call.in[1].as<int32_t>() : 0;
  double factor = call.attrs.real_or("attention_factor", 1);
  double direction = call.attrs.integer_or("inverse", 0) != 0 ? -factor : factor;
  double* frequencies = reinterpret_cast<double*>(call.workspace) + sizes.frequencies_at();
  for (int64_t j = 0; j < half; ++j) frequencies[j] = rope_frequency(call.attrs, j, dim);
  for_blocks(call.team, sizes.length, rows_per_task(dim * 32), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      T *cosines = table + s * dim, *sines = cosines + half;
      double position = static_cast<double>(start + call.in[0].global_index(1, s));
      for (int64_t j = 0; j < half; ++j) {
        double angle = position * frequencies[j];
        cosines[j] = static_cast<T>(factor * std::cos(angle));
        sines[j] = static_cast<T>(direction * std::sin(angle));
      }
    }
  });
}

// Which elements of a head turn, and which of them together.
struct TurnedPart {
  int64_t first, count;
  bool interleaved;
};

// Pairs of neighbours.
template <class T>
void turn_neighbours(const T* from, const T* cosines, T* to, int64_t pairs) {
  const T* sines = cosines + pairs;
  for (int64_t j = 0; j < pairs; ++j) {
    T a = from[2 * j], b = from[2 * j + 1];
    to[2 * j] = a * cosines[j] - b * sines[j];
    to[2 * j + 1] = b * cosines[j] + a * sines[j];
  }
}

// Heads of which only a part turns.
template <class T>
void turn_parts(const T* from, const T* cosines, T* to, const LocalHeads& heads, const TurnedPart& part) {
  int64_t end = part.first + part.count;
  for (int64_t head = 0; head < heads.q + heads.kv; ++head, from += heads.dim, to += heads.dim) {
    if (part.interleaved)
      turn_neighbours(from + part.first, cosines, to + part.first, part.count / 2);
    else
      turn_heads(from + part.first, cosines, to + part.first, part.count / 2, 1);
    if (from == to) continue;
    std::copy(from, from + part.first, to);
    std::copy(from + end, from + heads.dim, to + end);
  }
}

void run_rope(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    const T* x = call.in[0].as<T>();
    T *y = call.out[0].as<T>(), *table = reinterpret_cast<T*>(call.workspace);
    RopeTable sizes(call.attrs, shape);
    int64_t front = sizes.front;
    TurnedPart part{call.attrs.integer_or("rotary_first", 0), front, call.attrs.integer_or("interleaved", 0) != 0};
    fill_table(call, sizes, table);
    for_blocks(call.team, shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * width;
        T* to = y + row * width;
        const T* cosines = table + row % length * front;
        if (front == heads.dim && !part.interleaved)
          turn_heads(from, cosines, to, front / 2, heads.q + heads.kv);
        else
          turn_parts(from, cosines, to, heads, part);
        if (from != to) std::copy(from + heads.v_at(0), from + width, to + heads.v_at(0));
      }
    });
  });
  write_amax(call, call.out[0]);
}

}  // namespace

const CpuKernel rope{.run = run_rope};

}  // namespace sextant::cpu
