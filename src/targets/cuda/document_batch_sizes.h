// The scratch of attention over documents as a ragged batch (exec/cuda/attention/document_batch.h), from its beginning:
// what says where documents are, then what has another order for cuDNN than in the Program, then cuDNN's own. Pure
// functions of the shape.
#pragma once

#include <array>
#include <cstdint>

#include "base/units.h"
#include "targets/cuda/attention_sizes.h"

namespace sextant::cuda {

// Rows whose places in a ragged batch are told, in elements: each as wide as one position.
enum class DocumentRows : uint8_t { qkv, y, stats, dk, dv };
constexpr size_t kDocumentRows = 5;

inline std::array<int64_t, kDocumentRows> document_row_widths(const AttentionShape& s) {
  return {(s.heads + s.kv_heads) * s.head_dim + s.kv_heads * s.value_dim, s.heads * s.value_dim, s.heads,
          s.kv_heads * s.head_dim, s.kv_heads * s.value_dim};
}

// Where query heads share a key head cuDNN sums dk and dv in a copy as many times as wide as its output's rows: the
// packed dqkv would make these copies several times larger than they need be.
inline bool has_own_kv_gradients(const AttentionShape& shape) {
  return shape.heads != shape.kv_heads;
}

class DocumentBatchSizes {
 public:
  enum class Pass : uint8_t { forward, backward };

  DocumentBatchSizes(const AttentionShape& s, Pass pass) {
    const int64_t positions = s.batch * s.length;
    const std::array<int64_t, kDocumentRows> widths = document_row_widths(s);
    auto wide = [&](DocumentRows rows) { return widths[static_cast<size_t>(rows)]; };
    counts = take(s.batch * int64_t{sizeof(int32_t)});
    fits = take(int64_t{sizeof(int32_t)});
    lengths = take(s.capacity * int64_t{sizeof(int32_t)});
    for (int64_t& at : offsets) at = take((s.capacity + 1) * int64_t{sizeof(int64_t)});
    stats = take(positions * s.heads * int64_t{sizeof(float)});
    dots = take(pass == Pass::backward ? attention_dots(s).n : 0);
    bool copies = pass == Pass::backward && has_own_kv_gradients(s);
    dk = take(copies ? positions * wide(DocumentRows::dk) * 2 : 0);
    dv = take(copies ? positions * wide(DocumentRows::dv) * 2 : 0);
    library = bytes;
    library_bytes = kTileChange;
    // dq is summed in f32 in rows as far apart as those of dqkv; sums of dy·y; dk and dv of every query head.
    if (pass == Pass::backward) library_bytes += positions * (wide(DocumentRows::qkv) + s.heads) * 4;
    if (copies) library_bytes += positions * s.heads * (s.head_dim + s.value_dim) * 4;
    take(library_bytes);
  }

  int64_t counts = 0, fits = 0, lengths = 0, stats = 0, dots = 0, dk = 0, dv = 0, library = 0;  // bytes from the start
  std::array<int64_t, kDocumentRows> offsets{};
  int64_t library_bytes = 0;  // cuDNN's part
  int64_t bytes = 0;          // all

 private:
  static constexpr int64_t kTileChange = int64_t{4} << 20;  // tile counters, tensor maps
  static constexpr int64_t kAligned = 256;

  int64_t take(int64_t size) {
    int64_t at = bytes;
    bytes += round_up(size, kAligned);
    return at;
  }
};

}  // namespace sextant::cuda
