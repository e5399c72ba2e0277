#include "targets/cuda/attention_sizes.h"

#include <algorithm>

#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

// Bytes that cuDNN's plans keep beside the tensors below: tile counters, tensor maps.
constexpr int64_t kSmallChange = int64_t{4} << 20;
constexpr int64_t kRowMultiple = 128;  // positions of a tile
constexpr int64_t kLargestLibraryHead = 256;

AttentionShape shape_of(const Attrs& attrs, const LocalType& rows, Documents documents) {
  const LocalShape& qkv = rows.shape;
  LocalHeads heads = local_heads(attrs, qkv[2]);
  return {.batch = qkv[0],
          .length = qkv[1],
          .heads = heads.q,
          .kv_heads = heads.kv,
          .head_dim = heads.dim,
          .value_dim = heads.value_dim,
          .documents = documents,
          .scale = static_cast<float>(attention_scale_of(attrs)),
          .window = key_range_of(attrs).window,
          .dtype = rows.dtype,
          .capacity = documents == Documents::apart ? qkv[0] * attrs.integer_or("sequence_documents", 0) : 0};
}

Documents documents_of(std::span<const LocalType> in, size_t at) {
  return in.size() > at && in[at].dtype == DType::i32 ? Documents::apart : Documents::together;
}

// A single position is refused by cuDNN, and is no work.
bool library_takes(const Attrs& attrs, const AttentionShape& shape, int64_t multiple) {
  if (has_alibi(attrs) || attrs.has("dropout") || key_range_of(attrs).chunk > 0) return false;
  auto takes = [&](int64_t dim) { return dim % multiple == 0 && dim <= kLargestLibraryHead; };
  bool half = shape.dtype == DType::bf16 || shape.dtype == DType::f16;
  return half && takes(shape.head_dim) && takes(shape.value_dim) && shape.length > 1;
}

int64_t query_rows(const AttentionShape& shape) {
  return shape.batch * shape.heads * round_up(shape.length, kRowMultiple);
}

}  // namespace

AttentionShape attention_shape(const Attrs& attrs, std::span<const LocalType> in) {
  return shape_of(attrs, in[0], documents_of(in, kBegins));
}

AttentionShape attention_backward_shape(const Attrs& attrs, std::span<const LocalType> in) {
  return shape_of(attrs, in[1], documents_of(in, kBackwardBegins));
}

bool has_alibi(const Attrs& attrs) {
  return attrs.integer_or("alibi", 0) != 0;
}

bool uses_library_attention(const Attrs& attrs, const AttentionShape& shape) {
  return library_takes(attrs, shape, 8) && (shape.window == 0 || shape.documents == Documents::together);
}

bool uses_ragged_batch(const Attrs& attrs, const AttentionShape& shape) {
  return shape.capacity > 0 && library_takes(attrs, shape, 16);
}

Bytes attention_library_scratch(const AttentionShape&) {
  return {kSmallChange};
}

// dq is summed in f32, beside the sums of dy·y and the rows' statistics; where query heads share a key head, dk and dv
// are made per query head first, in bf16. Repeatable sums need a matrix besides: scratch is planned for that of one
// sequence at least, and the batch is worked off in parts that fit.
Bytes attention_library_backward_scratch(const AttentionShape& shape, Determinism determinism) {
  int64_t dq = query_rows(shape) * shape.head_dim * 4, sums = 2 * query_rows(shape) * 4;
  int64_t shared = shape.heads == shape.kv_heads ? 0 : query_rows(shape) * (shape.head_dim + shape.value_dim) * 2;
  Bytes fast{dq + sums + shared + kSmallChange};
  if (determinism == Determinism::fast) return fast;
  AttentionShape one = shape;
  one.batch = 1;
  return std::max(fast, attention_library_backward_scratch(one, Determinism::fast) + repeatable_matrix(one));
}

Bytes repeatable_matrix(const AttentionShape& shape) {
  return {query_rows(shape) * round_up(shape.length, kRowMultiple) * 2};
}

Bytes attention_dots(const AttentionShape& shape) {
  return {shape.batch * shape.heads * shape.length * int64_t{sizeof(float)}};
}

}  // namespace sextant::cuda
