// Causal softmax attention of a block of queries of one head over the keys and values of one head, key block by key
// block with a running maximum (FlashAttention's recurrence), so that no row of scores is ever longer than
// kKeysPerBlock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/units.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/dropout_mask.h"
#include "ops/attention_widths.h"
#include "ops/attention_window.h"
#include "targets/cpu/attention_sizes.h"

namespace sextant::cpu {

// Weights that are left out after the softmax: the mask, and where query 0 and key 0 of a block stand in it.
struct WeightDropout {
  const DropoutMask* mask = nullptr;  // null: none
  uint64_t key = 0;                   // of the sequence
  int64_t head = 0;                   // of the model
  int64_t query_0 = 0, key_0 = 0;
  int64_t stride = 1;  // positions from one query or key to the next

  // The factors of `count` keys from `key` on, for one query.
  template <class T>
  void fill(int64_t query, int64_t first, T* factors, int64_t count) const {
    const int64_t row = query_0 + query * stride, column = key_0 + first * stride;
    if (stride == 1) return mask->fill(key, head, row, column, std::span<T>(factors, static_cast<size_t>(count)));
    for (int64_t j = 0; j < count; ++j) mask->fill(key, head, row, column + j * stride, std::span<T>(factors + j, 1));
  }
};

// Dropout of an op, from its operands and attrs, for all heads of this rank. `y` holds rows of attention's output; its
// placement gives the heads of the model that the rank has.
class AttentionDropout {
 public:
  AttentionDropout(const Attrs& attrs, std::span<const Tensor> in, const Tensor& y) : y_(y), dim_(value_dim_of(attrs)) {
    const Tensor* keys = dropout_keys(in);
    if (!keys) return;
    mask_.emplace(attrs);
    keys_ = keys->as<const uint64_t>();
  }

  // Of a sequence and a head of this rank, where query 0 and key 0 of a block stand at these positions.
  WeightDropout of(int64_t b, int64_t head, int64_t query_0, int64_t key_0, int64_t stride = 1) const {
    if (!mask_) return {};
    return {&*mask_, keys_[b], y_.global_index(2, head * dim_) / dim_, query_0, key_0, stride};
  }

 private:
  std::optional<DropoutMask> mask_;
  const uint64_t* keys_ = nullptr;
  const Tensor& y_;
  int64_t dim_;
};

// Where the keys and queries of a block stand: key 0 at position key_0, query 0 `distance` positions after it, and from
// one key or query to the next are `stride` positions.
struct KeyPlaces {
  int64_t distance = 0, key_0 = 0, stride = 1;

  int64_t of_query(int64_t i) const { return key_0 + distance + i * stride; }
  // The first key at that position or behind it.
  int64_t first_key_at(int64_t position) const { return position <= key_0 ? 0 : ceil_div(position - key_0, stride); }
  // For queries from `first` on.
  KeyPlaces from_query(int64_t first) const { return {distance + first * stride, key_0, stride}; }
};

template <class T>
struct Attend {
  int64_t queries;    // at most kQueriesPerBlock
  int64_t first;      // position of the first query: it sees keys 0 … first, the next one key more
  int64_t dim;        // of queries and keys
  int64_t value_dim;  // of values and y
  Matrix<T> q, k, v;  // rows are positions
  T* y;
  int64_t y_stride;
  T* lse;                                              // one per query, or null
  int64_t keys = std::numeric_limits<int64_t>::max();  // there are no more than this
  const int32_t* begins = nullptr;                     // one per query: as FirstKeys has them
  T slope = 0;            // ALiBi: what a key's score loses per position that it lies before its query
  KeyPlaces places = {};  // where keys and queries stand in the sequence
  T scale = 0;            // of scores; 0 = 1/sqrt(dim)
  KeyRange range = {};    // which keys up to its own position a query sees
  WeightDropout dropout = {};
  const T* sink = nullptr;  // a score that every query sees and that has no value
};

template <class T>
T scale_of_scores(T scale, int64_t dim) {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<T>(dim));
}

// Adds −slope·(positions between them) to the scores of query `own` and keys first_key, …, which are still to be
// multiplied by `scale`.
template <class T>
void add_alibi(T* scores, int64_t keys, int64_t first_key, int64_t own, const KeyPlaces& places, T slope_by_scale) {
  const int64_t behind = (first_key - own) * places.stride - places.distance;
  for (int64_t j = 0; j < keys; ++j) scores[j] += slope_by_scale * static_cast<T>(behind + j * places.stride);
}

// The first keys that neighbouring queries see.
struct FirstKeys {
  const int32_t*
      begins;  // one per query, or null: the position in the sequence before which it sees no key but its own
  KeyPlaces places;
  KeyRange range;

  // That of query i, counted from key 0; behind all keys where they lie before what it sees.
  int64_t of(int64_t i) const {
    int64_t own = places.of_query(i);
    return places.first_key_at(std::max(begins ? std::min<int64_t>(begins[i], own) : 0, range.first(own)));
  }
  // The first of any of `queries` queries.
  int64_t of_any(int64_t queries) const {
    int64_t key = of(0);
    for (int64_t i = 1; i < queries && key > 0; ++i) key = std::min(key, of(i));
    return key;
  }
};

template <class T>
void attend(const Attend<T>& block, std::byte* scratch);  // attend_scratch bytes

}  // namespace sextant::cpu
