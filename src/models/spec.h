// ModelSpec: everything that decides a model's shape and mathematics, and nothing about how it is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/choice.h"
#include "models/activation.h"

namespace sextant {

// How RoPE's frequencies differ from theta^(-2j/dims), so that a model may see more positions than at first: the
// rope_type of Hugging Face, under the same names.
enum class RopeType : uint8_t {
  linear,    // all divided by the factor
  dynamic,   // as without, up to max_seq: only longer sequences, which are refused, would change them
  llama3,    // low ones divided by the factor, high ones as they are, a blend between
  yarn,      // likewise, by the number of turns over the first context (Peng et al. 2023)
  longrope,  // each divided by a number of its own (Ding et al. 2024)
};

struct RopeTypeChoice : Choice<RopeType> {
  bool by_numbers = true;  // a few numbers describe it; else it comes with a directory only
};

inline constexpr RopeTypeChoice kRopeTypes[] = {
    {{RopeType::linear, "linear"}}, {{RopeType::dynamic, "dynamic"}},          {{RopeType::llama3, "llama3"}},
    {{RopeType::yarn, "yarn"}},     {{RopeType::longrope, "longrope"}, false},
};
constexpr const auto& choices_of(RopeType) {
  return kRopeTypes;
}

struct RopeScaling {
  RopeType type = RopeType::llama3;
  double factor = 8;
  int64_t original_max_positions = 8192;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn: turns from which on a frequency stays, or is divided
  bool truncate = true;                              // yarn: whether the bounds between are whole pairs
  double attention_factor = 1;                       // yarn, longrope: what cosines and sines are multiplied by
  double mscale_all_dim = 0;                         // attention's scores are multiplied by score_factor; 0 = by 1
  // longrope: a divisor of each pair's frequency, for sequences up to original_max_positions and for longer ones.
  std::vector<double> short_factor, long_factor;
  bool operator==(const RopeScaling&) const = default;
};

// The factor of yarn and longrope on cosines and sines where a model does not set it.
double default_attention_factor(const RopeScaling& scaling);

// The factor on attention scores in addition to their own scale: (0.1·mscale_all_dim·ln(factor) + 1)².
double score_factor(const RopeScaling& scaling);

// Where the norms of a block stand, for the architectures that leave it to the spec.
enum class NormPlacement : uint8_t { pre, pre_without_final, post };

inline constexpr Choice<NormPlacement> kNormPlacements[] = {
    {NormPlacement::pre, "pre", "before attention and MLP, and one behind the last block"},
    {NormPlacement::pre_without_final, "pre-without-final",
     "the same without that one (OPT's `_remove_final_layer_norm`)"},
    {NormPlacement::post, "post", "behind each has been added, and none behind the last block, as in OPT-350M"},
};
constexpr const auto& choices_of(NormPlacement) {
  return kNormPlacements;
}

// The function from a router's logits to scores. Scores choose the experts and weigh their outputs.
enum class ExpertScore : uint8_t { softmax, sigmoid };

inline constexpr Choice<ExpertScore> kExpertScores[] = {
    {ExpertScore::softmax, "softmax"},
    {ExpertScore::sigmoid, "sigmoid"},
};
constexpr const auto& choices_of(ExpertScore) {
  return kExpertScores;
}

// Over what the loss that balances experts takes its means. Where they are balanced it is the coefficient, over all
// layers together top_k times that.
enum class BalanceScope : uint8_t { all_layers, layer, sequence };

inline constexpr Choice<BalanceScope> kBalanceScopes[] = {
    {BalanceScope::all_layers, "all-layers", "all tokens in all layers together, as in transformers"},
    {BalanceScope::layer, "layer", "all tokens of the microbatch in each layer, as in Switch and Megatron"},
    {BalanceScope::sequence, "sequence", "each sequence in each layer, as in DeepSeek"},
};
constexpr const auto& choices_of(BalanceScope) {
  return kBalanceScopes;
}

// Which slots an expert keeps that takes fewer than ask for it.
enum class DropPolicy : uint8_t { probs, position };

inline constexpr Choice<DropPolicy> kDropPolicies[] = {
    {DropPolicy::probs, "probs", "the tokens with the largest routing weights"},
    {DropPolicy::position, "position", "the first tokens of a sequence"},
};
constexpr const auto& choices_of(DropPolicy) {
  return kDropPolicies;
}

// Experts in place of the MLP: every token goes through some of many.
struct ExpertsSpec {
  int64_t count = 8;
  int64_t per_token = 2;
  int64_t ffn = 0;                         // width of one expert
  bool normalise = true;                   // whether the weights of a token's experts are made to sum to 1
  double balance_loss = 0;                 // coefficient of the loss that balances how much experts get
  int64_t every = 1;                       // every n-th layer has experts, the others an MLP
  std::vector<int64_t> dense_layers = {};  // layers with an MLP in any case, ascending
  int64_t dense_first = 0;                 // so many layers in front have an MLP in any case
  int64_t shared_ffn = 0;                  // width of an expert that every token goes through; 0 = there is none
  ExpertScore score = ExpertScore::softmax;
  // Experts stand in `groups` groups of equal size. A token's are chosen in the keep_groups of them whose group_top
  // best scores are the largest in sum.
  int64_t groups = 1, keep_groups = 1, group_top = 1;
  double scale = 1;  // what the weights of a token's experts are multiplied by at last
  // A bias that is added to scores where experts are chosen, and to nothing else. It is not trained: after each step
  // that of an expert with less than the mean load is raised by bias_update_speed, with more lowered.
  bool correction_bias = false;
  double bias_update_speed = 0;
  bool forced_balance = false;  // experts take turns, whatever the router says: to measure speed
  // In training and evaluation, an expert takes so many times its balanced load of a sequence, and no more; 0: all.
  double drop_above = 0;
  DropPolicy drop_policy = DropPolicy::probs;
  BalanceScope balance_scope = BalanceScope::all_layers;
  double z_loss = 0;            // coefficient of the loss that keeps the router's logits small, in each layer
  double swiglu_limit = 0;      // where gate and up are cut off (gpt-oss); 0 = nowhere
  double swiglu_alpha = 1.702;  // what is in the sigmoid beside the gate, with a limit
  bool operator==(const ExpertsSpec&) const = default;
};

// Latent attention: queries, and keys and values, are made from narrow rows (DeepSeek-V2). A head of queries and keys
// has head_dim elements, of which the last rope_dim are turned by RoPE; those of keys are the same for all heads.
struct LatentSpec {
  int64_t q_rank = 1536;  // width of the narrow rows of queries; 0 = queries come from the whole rows
  int64_t kv_rank = 512;
  int64_t rope_dim = 64;
  int64_t value_dim = 128;  // width of a head of values
  bool operator==(const LatentSpec&) const = default;
};

struct ModelSpec {
  std::string architecture;  // "gpt2", "llama": names a file of models/
  std::string hf_type;       // the model_type of its config.json where the fields below do not tell it ("mistral")
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // = heads unless grouped-query attention
  int64_t head_dim = 0;  // = hidden / heads unless given
  int64_t ffn = 0;       // width of the MLP
  int64_t vocab = 0;
  int64_t max_seq = 0;  // positions the model may see
  double norm_eps = 1e-5;
  double rope_theta = 10000;  // architectures with RoPE
  // Optional fields, for the architectures whose definition names them.
  std::optional<RopeScaling> rope_scaling;
  double rotary_fraction = 1;            // the part of each head that RoPE turns
  std::optional<Activation> activation;  // of an MLP without a gate; none = the architecture's
  NormPlacement norm_placement = NormPlacement::pre;
  int64_t embedding_width = 0;       // of the tables of tokens, where matrices project to hidden and back; 0 = hidden
  bool qkv_bias = false;             // biases of q, k and v (Qwen 2)
  bool out_bias = false;             // a bias of attention's output (with qkv_bias: attention_bias of Llama)
  bool mlp_bias = false;             // biases of the MLP
  bool qk_norm = false;              // RMSNorm of every head of q and k (Qwen 3; in Llama 4 without weights)
  int64_t window = 0;                // a token sees so many at most (Mistral 7B v0.1); 0 = all
  int64_t full_attention_first = 0;  // of layers with a window, those in front that see all (Qwen 2)
  int64_t full_attention_every = 0;  // every n-th layer sees all (Gemma 2: 2); 0 = none
  std::vector<int64_t> full_attention_layers;  // layers that see all in any case, ascending
  int64_t attention_chunk = 0;                 // in layers with RoPE a token sees those of its chunk (Llama 4); 0 = all
  int64_t temperature_positions =
      0;  // in layers without RoPE queries grow every so many positions (Llama 4); 0 = never
  double temperature_strength = 0.1;   // by which: 1 + this·ln(1 + steps so far)
  bool inverse_layer_scaling = false;  // scores are divided by the number of the layer, from 1 (GPT-2's option)
  bool parallel_residual = false;      // attention and MLP side by side, not one after the other (GPT-NeoX)
  int64_t no_rope_every = 0;           // every n-th layer has no RoPE (SmolLM3); 0 = none
  double embedding_multiplier = 1;     // of embeddings (Granite), as the three below
  double attention_multiplier = 0;     // of attention's scores; 0 = 1/sqrt(head_dim)
  double residual_multiplier = 1;      // of what attention and MLP add
  double logits_scaling = 1;           // logits are divided by it

  std::optional<LatentSpec> latent;
  std::optional<ExpertsSpec> experts;
  // Multi-token prediction: how many tokens behind the next one each position predicts in training, each by a module
  // with a layer of its own behind the last (DeepSeek-V3); 0 = none.
  int64_t mtp_depths = 0;

  bool tied_head = false;  // the output head is the embedding matrix
  double init_std = 0.02;
  std::optional<int64_t> bos_token;
  std::vector<int64_t> eos_tokens;
  std::optional<int64_t> padding_token;  // its row of the embedding gets no gradient from the input
  bool operator==(const ModelSpec&) const = default;
};

// Far beyond any model, and small enough that counts of elements, bytes and flops fit 64 bits.
inline constexpr int64_t kMaxLayers = int64_t{1} << 14;
inline constexpr int64_t kMaxHidden = int64_t{1} << 20;
inline constexpr int64_t kMaxHeads = int64_t{1} << 14;
inline constexpr int64_t kMaxFfn = int64_t{1} << 22;
inline constexpr int64_t kMaxExperts = int64_t{1} << 13;
inline constexpr int64_t kMaxVocab = int64_t{1} << 26;
inline constexpr int64_t kMaxMtpDepths = 16;
inline constexpr int64_t kMaxSeq = int64_t{1} << 30;

// The MLP width an architecture has when nobody says otherwise: 4 hidden, or what its definition says.
int64_t default_ffn(std::string_view architecture, int64_t hidden);

// How many tokens a token sees in that layer, itself among them; 0 = all before it.
int64_t window_of_layer(const ModelSpec& spec, int64_t layer);

// The activation of the MLP: the spec's choice, else the architecture's. Architectures with that choice only.
Activation activation_of(const ModelSpec& spec);

// The width of the embedding and of the output head.
int64_t embedding_width_of(const ModelSpec& spec);

bool layer_has_experts(const ModelSpec& spec, int64_t layer);

// The widths of the MLPs and experts that the model has, which tensor-parallel ranks share, each with its field.
enum class MlpOf : uint8_t { layer, experts };
struct MlpWidth {
  std::string_view field;
  int64_t width;
  MlpOf of = MlpOf::layer;
};
std::vector<MlpWidth> mlp_widths(const ModelSpec& spec);

// How many elements of each head RoPE turns.
int64_t rotary_dims(const ModelSpec& spec);

// A contradiction in a spec. The first field is to blame, the others take part.
struct SpecProblem {
  std::vector<std::string_view> fields;
  std::string got;
  std::string expected;
};

// Everything that keeps the spec from being a model; empty when it is one. A vocab of 0 is no problem here: the
// tokenizer may still decide it.
std::vector<SpecProblem> problems_of(const ModelSpec& spec);

// "gpt2 has learned positions and no RoPE"; empty where the architecture has RoPE, and for an unknown one.
std::string why_no_rope(std::string_view architecture);

}  // namespace sextant
