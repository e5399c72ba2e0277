// The heads that this rank holds. Attrs count the heads of the whole model; a tensor-parallel rank has a part of them,
// in the same proportion, and its packed rows say how many: (q + 2·kv)·dim elements of q heads, then k heads, then v
// heads.
#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace sextant {

struct LocalHeads {
  int64_t q, kv, dim;

  int64_t qkv_width() const { return (q + 2 * kv) * dim; }
  int64_t y_width() const { return q * dim; }
  int64_t kv_of(int64_t head) const { return head * kv / q; }
  // Where in a packed row the parts of a head begin.
  int64_t q_at(int64_t head) const { return head * dim; }
  int64_t k_at(int64_t kv_head) const { return (q + kv_head) * dim; }
  int64_t v_at(int64_t kv_head) const { return (q + kv + kv_head) * dim; }
};

inline LocalHeads local_heads(const Attrs& attrs, int64_t qkv_width) {
  int64_t heads = attrs.integer("heads"), kv_heads = attrs.integer("kv_heads"), dim = attrs.integer("head_dim");
  int64_t kv = qkv_width / dim * kv_heads / (heads + 2 * kv_heads);
  return {qkv_width / dim - 2 * kv, kv, dim};
}

}  // namespace sextant
