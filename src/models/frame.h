// What decoder-only language models share: tokens in at one end, loss or logits out at the other, and the attention of
// a block. Models differ in norms, positions, biases and how the halves of a block are joined.
#pragma once

#include <cstdint>
#include <optional>

#include "models/model.h"
#include "nn/blocks.h"

namespace sextant {

// The feeds of a use, made before the model's first op.
struct Frame {
  ValueId tokens = kNoValue;
  ValueId begins = kNoValue;           // with a mask of documents
  std::optional<CachePosition> cache;  // generation only
  ValueId at = kNoValue;               // generation only: the position whose logits are wanted
};

Frame open_frame(Builder& b, const Use& use);

// The end of a model: `x` after the last norm, `head` the output matrix.
void close_frame(Builder& b, const Use& use, const Frame& frame, ValueId x, ValueId head);

ValueId token_table(Builder& b, const ModelSpec& m);                 // at embed.weight
ValueId output_head(Builder& b, const ModelSpec& m, ValueId table);  // at head.weight, or the table where it is tied

// The tokens' rows of the table, laid out as the residual stream.
ValueId embedded(Builder& b, const ModelSpec& m, const Frame& frame, ValueId table);

// x plus the learned row of each position, at positions.weight; `unused` rows of it come first.
ValueId with_positions(Builder& b, const ModelSpec& m, const Frame& frame, ValueId x, int64_t unused = 0);

Rope rope_of(const ModelSpec& m);

// Attention from normed rows to what is still to be added to the residual stream: weights at qkv, out and, where heads
// are normed, q_norm and k_norm.
struct SelfAttention {
  Bias qkv_bias = Bias::none, out_bias = Bias::none;
  std::optional<Rope> rope;
  Alibi alibi = Alibi::none;
  std::optional<double> qk_norm_eps;
};
ValueId self_attention(Builder& b, const ModelSpec& m, const Frame& frame, ValueId normed, const SelfAttention& spec);

// MLPs of the model's sizes, also still to be added: weights at up and down, or, with a gate (SwiGLU), at gate_up and
// down.
ValueId model_mlp(Builder& b, const ModelSpec& m, ValueId normed, const OpDef& activation, Bias bias);
ValueId gated_mlp(Builder& b, const ModelSpec& m, ValueId normed);

// x plus both halves of a block that were computed side by side: tensor-parallel ranks sum them in one message.
ValueId parallel_halves(Builder& b, ValueId x, ValueId attention, ValueId mlp);

}  // namespace sextant
