// The scratch of attention over documents as ragged batches (exec/cuda/attention/document_batch.h), from its beginning:
// what says where documents are, then what has another order for cuDNN than in the Program, then cuDNN's own. Pure
// functions of the shape.
#pragma once

#include <algorithm>
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

// Documents are several ragged batches, since a batch is launched as if all of its documents were there, and as long as
// its longest.
struct DocumentPart {
  int64_t longest = 0, room = 0;
};
constexpr int64_t kLongestMiddle = 512, kLongestShort = 128;
constexpr size_t kDocumentParts = 4;

// The first part, as large as the shape's capacity, has all documents where it has room for them, else those longer
// than kLongestMiddle; the second has these in its place where it has room, and is half as large. The third has those
// longer than kLongestShort, and room for as many as there can be; the fourth the others, down to 64 tokens on average.
inline std::array<DocumentPart, kDocumentParts> document_parts(const AttentionShape& s) {
  return {DocumentPart{s.length, s.capacity}, DocumentPart{s.length, ceil_div(s.capacity, 2)},
          DocumentPart{std::min(s.length, kLongestMiddle), 4 * s.capacity},
          DocumentPart{std::min(s.length, kLongestShort), 4 * s.capacity}};
}

// The ragged batch that a part is.
inline AttentionShape shape_of_part(AttentionShape shape, const DocumentPart& part) {
  shape.longest = part.longest;
  shape.capacity = part.room;
  return shape;
}

// Which parts have documents, as the device finds: all in the first; those longer than kLongestMiddle in the second, in
// the first where there are too many, or there are none; or they do not fit, and our own kernels do the work.
enum class DocumentWay : int32_t { together, few_long, many_long, none_long, own };
constexpr size_t kDocumentWays = 5;

constexpr bool has_documents(DocumentWay way, size_t part) {
  using enum DocumentWay;
  if (part == 0) return way == together || way == many_long;
  if (part == 1) return way == few_long;
  return way != together && way != own;
}

// Documents of a sequence are counted by their length: long, middle, short.
constexpr size_t kDocumentLengths = 3;

class DocumentBatchSizes {
 public:
  enum class Pass : uint8_t { forward, backward };

  DocumentBatchSizes(const AttentionShape& s, Pass pass) {
    const int64_t positions = s.batch * s.length;
    const std::array<int64_t, kDocumentRows> widths = document_row_widths(s);
    auto wide = [&](DocumentRows rows) { return widths[static_cast<size_t>(rows)]; };
    counts = take(s.batch * static_cast<int64_t>(kDocumentLengths * sizeof(int32_t)));
    fits = take(int64_t{sizeof(int32_t)});
    way = take(int64_t{sizeof(int32_t)});
    const std::array<DocumentPart, kDocumentParts> parts = document_parts(s);
    for (size_t part = 0; part < kDocumentParts; ++part) {
      lengths[part] = take(parts[part].room * int64_t{sizeof(int32_t)});
      for (int64_t& at : offsets[part]) at = take((parts[part].room + 1) * int64_t{sizeof(int64_t)});
    }
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

  int64_t counts = 0, fits = 0, way = 0, stats = 0, dots = 0, dk = 0, dv = 0, library = 0;  // bytes from the start
  std::array<int64_t, kDocumentParts> lengths{};
  std::array<std::array<int64_t, kDocumentRows>, kDocumentParts> offsets{};
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
