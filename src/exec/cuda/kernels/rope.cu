#include <cmath>
#include <numeric>

#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/rope_frequency.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

constexpr int kMostPairs = 128;  // of a head: head_dim up to 256
constexpr int kHeadsAtOnce = 8;  // that share the sines of one thread
constexpr int kHeadsOnTheirWay = 4;

struct Frequencies {
  double of_pair[kMostPairs];
};

Frequencies frequencies_of(const Attrs& attrs, int64_t dim) {
  BUG_IF(dim / 2 > kMostPairs, "head_dim {} is more than rope's kernel takes", dim);
  Frequencies frequencies{};
  for (int64_t j = 0; j < dim / 2; ++j) frequencies.of_pair[j] = rope_frequency(attrs, j, dim);
  return frequencies;
}

// A "row" here is a group of heads of one packed row, a "column" a pair within a head: the sines of V pairs are found
// once for kHeadsAtOnce heads.
//
// Pairs are the halves of what turns, or, where they are interleaved, neighbours.
enum class Pairing : uint8_t { halves, neighbours };

template <class T, int V, Pairing kPairing>
struct Turn {
  const T* x;
  const int32_t* start;  // may be null
  T* y;
  int64_t length, width;
  int heads, turned, half, groups;  // turned: the heads of q and k, in front; groups of heads in one row
  int dim;                          // of a head; 2·half of it turn, from element `begin` on
  int begin;
  float factor, direction;  // of cosines, and of sines
  Spans positions;
  Frequencies frequencies;

  __device__ void find_sines(int64_t s, int64_t pair, float (&cosines)[V], float (&sines)[V]) const {
    int64_t position = positions.global_index(s) + (start ? *start : 0);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      // Whole turns are taken off in double: late positions turn by 1e5 radians and more.
      double turns = static_cast<double>(position) * frequencies.of_pair[pair + i] * 0.15915494309189535;  // 1/(2 pi)
      sincospif(static_cast<float>(2.0 * (turns - rint(turns))), &sines[i], &cosines[i]);
      cosines[i] *= factor;
      sines[i] *= direction;
    }
  }

  // V pairs of one head.
  struct Pairs {
    Packed<T, V> first, second;
  };

  __device__ void turn(Pairs& pairs, const float (&cosines)[V], const float (&sines)[V]) const {
    float a[V], b[V], left[V], right[V];
    unpack(pairs.first, a);
    unpack(pairs.second, b);
    if constexpr (kPairing == Pairing::neighbours) {
      turn_neighbours(a, b, cosines, sines, left, right);
    } else {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        left[i] = a[i] * cosines[i] - b[i] * sines[i];
        right[i] = b[i] * cosines[i] + a[i] * sines[i];
      }
    }
    pairs = {pack<T>(left), pack<T>(right)};
  }

  // 2·V elements, a and then b, of which each two neighbours are a pair.
  __device__ static void turn_neighbours(const float (&a)[V], const float (&b)[V], const float (&cosines)[V],
                                         const float (&sines)[V], float (&left)[V], float (&right)[V]) {
    float from[2 * V], to[2 * V];
#pragma unroll
    for (int i = 0; i < V; ++i) from[i] = a[i], from[V + i] = b[i];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      to[2 * i] = from[2 * i] * cosines[i] - from[2 * i + 1] * sines[i];
      to[2 * i + 1] = from[2 * i + 1] * cosines[i] + from[2 * i] * sines[i];
    }
#pragma unroll
    for (int i = 0; i < V; ++i) left[i] = to[i], right[i] = to[V + i];
  }

  // Returns the largest magnitude that it wrote.
  __device__ uint32_t operator()(int64_t grouped, int64_t pair) const {
    uint32_t most = 0;
    int64_t row = grouped / groups;
    int begin_head = static_cast<int>(grouped - row * groups) * kHeadsAtOnce;
    // Where the first V elements of the pairs lie in a head, and how far behind the others.
    constexpr bool neighbours = kPairing == Pairing::neighbours;
    const int64_t first_element = begin + (neighbours ? 2 * pair : pair);
    const int apart = neighbours ? V : half;
    float cosines[V], sines[V];
    find_sines(row % length, pair, cosines, sines);
#pragma unroll
    for (int first = begin_head; first < begin_head + kHeadsAtOnce; first += kHeadsOnTheirWay) {
      int64_t at = row * width + static_cast<int64_t>(first) * dim + first_element;
      Pairs pairs[kHeadsOnTheirWay];
#pragma unroll
      for (int k = 0; k < kHeadsOnTheirWay; ++k)
        if (first + k < heads) pairs[k] = {load<V>(x + at + k * dim), load<V>(x + at + k * dim + apart)};
#pragma unroll
      for (int k = 0; k < kHeadsOnTheirWay; ++k) {
        if (first + k >= heads) break;
        if (first + k < turned) turn(pairs[k], cosines, sines);
        store(y + at + k * dim, pairs[k].first);
        store(y + at + k * dim + apart, pairs[k].second);
        float left[V], right[V];
        unpack(pairs[k].first, left);
        unpack(pairs[k].second, right);
        most = max(most, max(largest_bits(left), largest_bits(right)));
      }
    }
    return most;
  }
};

void launch(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  LocalHeads heads = local_heads(call.attrs, shape[2]);
  const int64_t front = call.attrs.integer_or("rotary_dim", heads.dim), half = front / 2;
  int turned = static_cast<int>(heads.q + heads.kv);
  bool in_place = call.in[0].data == call.out[0].data;
  // The elements of a head that RoPE does not rotate are copied together with the whole tensor.
  bool part = front < heads.dim || heads.value_dim != heads.dim;
  if (part && !in_place)
    check_cuda(cudaMemcpyAsync(call.out[0].data, call.in[0].data,
                               static_cast<size_t>(call.in[0].count() * size_of(call.in[0].dtype)),
                               cudaMemcpyDeviceToDevice, call.stream),
               "copying what RoPE does not turn");
  // In place, the values already are where they belong; they are read again for the largest magnitude of all.
  float* amax = part ? nullptr : amax_of(call);
  int visited = (in_place && !amax) || part ? turned : turned + static_cast<int>(heads.kv);
  int groups = static_cast<int>(ceil_div(visited, kHeadsAtOnce));
  auto factor = static_cast<float>(call.attrs.real_or("attention_factor", 1));
  const int64_t first = call.attrs.integer_or("rotary_first", 0);
  auto launch_as = [&]<class T, int V, Pairing kPairing>() {
    Turn<T, V, kPairing> turn{.x = call.in[0].as<T>(),
                              .start = call.in.size() > 1 ? call.in[1].as<int32_t>() : nullptr,
                              .y = call.out[0].as<T>(),
                              .length = shape[1],
                              .width = shape[2],
                              .heads = visited,
                              .turned = turned,
                              .half = static_cast<int>(half),
                              .groups = groups,
                              .dim = static_cast<int>(heads.dim),
                              .begin = static_cast<int>(first),
                              .factor = factor,
                              .direction = call.attrs.integer_or("inverse", 0) != 0 ? -factor : factor,
                              .positions = spans_of(call.in[0], 1),
                              .frequencies = frequencies_of(call.attrs, front)};
    for_row_vectors<T, V>(call.stream, shape.rows() * groups, half, turn, amax);
  };
  bool neighbours = call.attrs.integer_or("interleaved", 0) != 0;
  // Rows, heads and what turns of them must all begin where V elements may be read at once.
  for_cuda_vectors(call.in[0].dtype, std::gcd(std::gcd(half, heads.dim), std::gcd(first, shape[2])),
                   [&]<class T, int V>() {
                     if (neighbours)
                       launch_as.template operator()<T, V, Pairing::neighbours>();
                     else
                       launch_as.template operator()<T, V, Pairing::halves>();
                   });
  if (!part || call.attrs.integer_or("amax", 0) == 0) return;
  CudaCall behind = call;  // of what turns in part, with all the rest
  behind.in = call.out.first(1);
  behind.out = call.out.last(1);
  cuda::absmax.launch_all({&behind, 1});
}

}  // namespace

const CudaKernel rope{.launch = launch};

}  // namespace sextant::cuda
