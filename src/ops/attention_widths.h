// How wide the parts of packed q|k|v rows are, over all ranks, from an op's attrs. Queries and keys have head_dim
// elements a head; values, and so attention's output, have value_dim, which is head_dim where it is not given.
#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace sextant {

inline int64_t value_dim_of(const Attrs& attrs) {
  return attrs.has("value_dim") ? attrs.integer("value_dim") : attrs.integer("head_dim");
}

inline int64_t query_width(const Attrs& attrs) {
  return attrs.integer("heads") * attrs.integer("head_dim");
}
inline int64_t key_width(const Attrs& attrs) {
  return attrs.integer("kv_heads") * attrs.integer("head_dim");
}
inline int64_t value_width(const Attrs& attrs) {
  return attrs.integer("kv_heads") * value_dim_of(attrs);
}
// Of attention's output.
inline int64_t output_width(const Attrs& attrs) {
  return attrs.integer("heads") * value_dim_of(attrs);
}

}  // namespace sextant
