// The heads that this rank holds. Attrs count the heads of the whole model; a tensor-parallel rank has a part of them,
// in the same proportion, and its packed rows say how many: q heads, then k heads of `dim` elements each, then v heads
// of `value_dim`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/attrs.h"
#include "ops/attention_widths.h"

namespace sextant {

struct LocalHeads {
  int64_t q, kv, dim, value_dim;

  int64_t qkv_width() const { return (q + kv) * dim + kv * value_dim; }
  int64_t q_width() const { return q * dim; }
  int64_t k_width() const { return kv * dim; }
  int64_t y_width() const { return q * value_dim; }
  int64_t widest() const { return std::max(dim, value_dim); }
  int64_t kv_of(int64_t head) const { return head * kv / q; }
  // Where in a packed row the parts of a head begin.
  int64_t q_at(int64_t head) const { return head * dim; }
  int64_t k_at(int64_t kv_head) const { return (q + kv_head) * dim; }
  int64_t v_at(int64_t kv_head) const { return (q + kv) * dim + kv_head * value_dim; }
  // Where in a row of attention's output the part of a head begins.
  int64_t y_at(int64_t head) const { return head * value_dim; }
};

inline LocalHeads local_heads(const Attrs& attrs, int64_t qkv_width) {
  int64_t all = query_width(attrs) + key_width(attrs) + value_width(attrs);
  return {attrs.integer("heads") * qkv_width / all, attrs.integer("kv_heads") * qkv_width / all,
          attrs.integer("head_dim"), value_dim_of(attrs)};
}

}  // namespace sextant
