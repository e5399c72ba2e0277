// Which attention cuDNN is asked for, and the most scratch that its plans may use: pure functions of the shape, so that
// memory is planned without a GPU. Where cuDNN is not there, or refuses a shape, our own kernels do the op in the same
// scratch; they need less. So the arena does not depend on the library that is found.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/units.h"
#include "ir/attrs.h"
#include "ir/plan.h"
#include "targets/kernel_needs.h"

namespace sextant {

// Of one sequence: whether they see each other.
enum class Documents : uint8_t { together, apart };

// Heads of this rank.
struct AttentionShape {
  int64_t batch = 0, length = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t value_dim = 0;  // of values and outputs
  Documents documents = Documents::together;
  float scale = 0;     // of scores; 0 = 1/sqrt(head_dim)
  int64_t window = 0;  // 0 = none
  DType dtype = DType::bf16;
  // Documents of all sequences that a ragged batch has room for; 0: they are masked in their sequences.
  int64_t capacity = 0;
  // The longest document of a ragged batch that holds a part of them; 0: as long as a sequence.
  int64_t longest = 0;
  bool masked() const { return documents == Documents::apart || window > 0; }
  auto operator<=>(const AttentionShape&) const = default;
};

namespace cuda {

// Where the positions stand at which documents begin, among the inputs, where they are at all: i32.
constexpr size_t kBegins = 1, kBackwardBegins = 4;

// Of packed rows qkv, input 0 of attention (with the begins behind it) and input 1 of its backward.
AttentionShape attention_shape(const Attrs& attrs, std::span<const LocalType> in);
AttentionShape attention_backward_shape(const Attrs& attrs, std::span<const LocalType> in);

bool has_alibi(const Attrs& attrs);

// cuDNN's plans know no ALiBi, no dropout of ours, no chunks, and no window where documents stay apart.
bool uses_library_attention(const Attrs& attrs, const AttentionShape& shape);

// Documents apart as a ragged batch, where the op says how many there may be (attr sequence_documents) and the heads
// are such that cuDNN does it. Windows may be beside them.
bool uses_ragged_batch(const Attrs& attrs, const AttentionShape& shape);

Bytes attention_library_scratch(const AttentionShape& shape);
Bytes attention_library_backward_scratch(const AttentionShape& shape, Determinism determinism);
// Of repeatable sums: s×s per head.
Bytes repeatable_matrix(const AttentionShape& shape);

// Σ dy·y of each row, for our own kernels.
Bytes attention_dots(const AttentionShape& shape);

}  // namespace cuda

}  // namespace sextant
