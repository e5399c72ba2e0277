// decoder(): the Graph of a decoder-only language model. All architectures are this one loop; a model file says in a
// Decoder what its own differs in.
#pragma once

#include <cstdint>
#include <optional>

#include "models/model_def.h"
#include "nn/blocks.h"

namespace sextant {

enum class NormKind : uint8_t { rms, layer, layer_without_bias };

// Where the norms of a block stand, and how its attention and MLP are joined.
enum class BlockOrder : uint8_t {
  pre_norm,           // x += attention(norm(x)), then x += mlp(norm(x))
  output_norm,        // x += norm(attention(x)), then x += norm(mlp(x))
  post_norm,          // x = norm(x + attention(x)), then x = norm(x + mlp(x))
  parallel,           // x += attention(norm(x)) + mlp(norm(x)), each with a norm of its own
  parallel_one_norm,  // x += attention(y) + mlp(y) with y = norm(x)
};

enum class MlpKind : uint8_t {
  plain,  // down(activation(up(x))): weights at up and down
  gated,  // down(activation(gate|up)): weights at gate_up and down
};

enum class QkNorm : uint8_t {
  none,
  heads,  // RMSNorm of every head of q and k
  whole,  // RMSNorm of q and of k over their whole width
  unit,   // of every head, without weights and behind RoPE, in layers that have it
};

// How the output of the shared expert, which every token goes through, is added, where the spec has such an expert.
enum class SharedExpert : uint8_t {
  added,
  gated,  // times the sigmoid of a number for each token: weight at shared.gate
};

// The logits whose softmax gives the weights of a token's experts; applies only where scores are a softmax.
enum class RoutingWeights : uint8_t {
  of_all,
  of_chosen,  // the logits of those that were chosen alone
};

// The layers without RoPE, chunks and temperature of attention, optional biases, the width of embeddings and the
// multipliers of attention, residuals and logits are as the spec says.
struct Decoder {
  NormKind norm = NormKind::rms;
  BlockOrder order = BlockOrder::pre_norm;
  bool final_norm = true;                    // behind the last block
  std::optional<int64_t> learned_positions;  // a learned table, with so many unused rows in front of it
  bool norm_of_embedding = false;
  double embedding_multiplier = 1;

  // Attention: weights at qkv, out and, with qk_norm, at q_norm and k_norm.
  Bias qkv_bias = Bias::none, out_bias = Bias::none;
  std::optional<Rope> rope;
  Alibi alibi = Alibi::none;
  QkNorm qk_norm = QkNorm::none;
  double latent_norm_eps = 1e-6;  // of the narrow rows of latent attention, where the spec has it
  bool sinks = false;             // every head has a logit that joins each softmax: weights at sinks

  RoutingWeights routing_weights = RoutingWeights::of_all;
  ExpertMlp::WeightOn routing_weight_on = ExpertMlp::WeightOn::output;
  Bias router_bias = Bias::none, expert_bias = Bias::none;
  SharedExpert shared_expert = SharedExpert::added;

  MlpKind mlp = MlpKind::gated;
  ActivationOp activation = &ops::swiglu;
  Bias mlp_bias = Bias::none;
};

Graph decoder(const ModelSpec& m, const Use& use, const Mesh& mesh, const Decoder& d);

// RoPE as the spec says, for the sequences of that use.
Rope rope_of(const ModelSpec& m, const Use& use);

}  // namespace sextant
