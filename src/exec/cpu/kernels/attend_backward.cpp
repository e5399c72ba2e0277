#include "exec/cpu/kernels/attend_backward.h"

#include <algorithm>
#include <cmath>

#include "exec/cpu/kernels/attend.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

struct Square {
  int64_t first, queries, first_key, keys;
  int64_t diagonal;  // query i of the square sees its keys up to i + diagonal
  Write dq_write;    // over: these are the first keys that its queries see
};

template <class T>
FirstKeys first_keys_of(const AttendGradient<T>& h) {
  return {h.begins, h.places, h.range};
}

// scores <- p = exp(c·q·kᵀ − lse), slopes <- ds = c·p·(dy·vᵀ − Σ dy·y); both 0 where a key may not be seen. With
// dropout, scores <- p·m and slopes <- c·p·(m·dy·vᵀ − Σ dy·y), m being the mask.
template <class T>
void score_gradients(const AttendGradient<T>& h, const Square& s, T* scores, std::byte* gemm_scratch) {
  T scale = scale_of_scores(h.scale, h.dim);
  T* slopes = scores + kScores;
  Gemm<T> gemm{.m = s.queries,
               .n = s.keys,
               .k = h.dim,
               .a = {h.q.at(s.first, 0), h.q.row_stride},
               .b = Matrix<T>{h.k.at(s.first_key, 0), h.k.row_stride}.transposed(),
               .c = scores,
               .c_stride = kKeysPerBlock,
               .triangle = Triangle::c_lower,
               .diagonal = s.diagonal};
  multiply(gemm, gemm_scratch);
  gemm.k = h.value_dim;
  gemm.a = {h.dy.at(s.first, 0), h.dy.row_stride};
  gemm.b = Matrix<T>{h.v.at(s.first_key, 0), h.v.row_stride}.transposed();
  gemm.c = slopes;
  multiply(gemm, gemm_scratch);
  for (int64_t i = 0; i < s.queries; ++i) {
    T *p = scores + i * kKeysPerBlock, *ds = slopes + i * kKeysPerBlock;
    int64_t seen = std::clamp<int64_t>(i + s.diagonal + 1, 0, s.keys);
    T d = dot(h.dy.at(s.first + i, 0), h.y.at(s.first + i, 0), h.value_dim);
    int64_t row = s.first + i;
    int64_t hidden = std::clamp<int64_t>(first_keys_of(h).of(row) - s.first_key, 0, seen);
    if (h.slope != 0) add_alibi(p + hidden, seen - hidden, s.first_key + hidden, row, h.places, h.slope / scale);
    exp_and_sum(p + hidden, seen - hidden, scale, h.lse[row]);
    if (h.dropout.mask) {
      T factors[kKeysPerBlock];
      h.dropout.fill(row, s.first_key, factors, s.keys);
      for (int64_t j = hidden; j < seen; ++j) {
        ds[j] = scale * p[j] * (factors[j] * ds[j] - d);
        p[j] *= factors[j];
      }
    } else {
      for (int64_t j = hidden; j < seen; ++j) ds[j] = scale * p[j] * (ds[j] - d);
    }
    for (T* zeroed : {p, ds}) {
      std::fill(zeroed, zeroed + hidden, T(0));
      std::fill(zeroed + seen, zeroed + s.keys, T(0));
    }
  }
}

// Of a block of queries against a block of keys, the part between the first and the last key that any of the queries
// sees.
template <class T>
Square square_at(const AttendGradient<T>& h, int64_t first, int64_t first_key) {
  int64_t queries = std::min(kQueriesPerBlock, h.queries - first), own = first + h.diagonal;
  FirstKeys first_keys{h.begins ? h.begins + first : nullptr, h.places.from_query(first), h.range};
  int64_t begin = first_keys.of_any(queries);
  int64_t from = std::max(first_key, begin), to = std::min({first_key + kKeysPerBlock, h.keys, own + queries});
  return {first, queries, from, to - from, own - from, from == begin ? h.dq_write : Write::add};
}

template <class T>
void add_square(const AttendGradient<T>& h, const Square& s, T* scores, std::byte* gemm_scratch) {
  T* slopes = scores + kScores;
  score_gradients(h, s, scores, gemm_scratch);
  multiply(Gemm<T>{.m = s.queries,
                   .n = h.dim,
                   .k = s.keys,
                   .a = {slopes, kKeysPerBlock},
                   .b = {h.k.at(s.first_key, 0), h.k.row_stride},
                   .c = h.dq + s.first * h.dq_stride,
                   .c_stride = h.dq_stride,
                   .write = s.dq_write,
                   .triangle = Triangle::a_lower,
                   .diagonal = s.diagonal},
           gemm_scratch);
  Gemm<T> keys{.m = s.keys,
               .n = h.dim,
               .k = s.queries,
               .a = Matrix<T>{slopes, kKeysPerBlock}.transposed(),
               .b = {h.q.at(s.first, 0), h.q.row_stride},
               .c = h.dk + s.first_key * h.dkv_stride,
               .c_stride = h.dkv_stride,
               .write = Write::add,
               .triangle = Triangle::a_upper,
               .diagonal = s.diagonal};
  multiply(keys, gemm_scratch);
  keys.n = h.value_dim;
  keys.a = Matrix<T>{scores, kKeysPerBlock}.transposed();
  keys.b = {h.dy.at(s.first, 0), h.dy.row_stride};
  keys.c = h.dv + s.first_key * h.dkv_stride;
  multiply(keys, gemm_scratch);
}

}  // namespace

template <class T>
void attend_backward(const AttendGradient<T>& h, std::byte* scratch) {
  T* scores = reinterpret_cast<T*>(scratch);
  std::byte* gemm_scratch = scratch + 2 * kScoreBytes;
  for (int64_t first_key = 0; first_key < h.keys; first_key += kKeysPerBlock) {
    // Queries before the first key's own position see none of the block.
    int64_t from = std::max<int64_t>(0, first_key - h.diagonal) / kQueriesPerBlock * kQueriesPerBlock;
    for (int64_t first = from; first < h.queries; first += kQueriesPerBlock) {
      Square s = square_at(h, first, first_key);
      if (s.keys > 0) add_square(h, s, scores, gemm_scratch);
    }
  }
}

template void attend_backward(const AttendGradient<float>&, std::byte*);
template void attend_backward(const AttendGradient<double>&, std::byte*);

}  // namespace sextant::cpu
