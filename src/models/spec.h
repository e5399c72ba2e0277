// ModelSpec: everything that decides a model's shape and mathematics, and nothing about how it is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// Llama-3's stretching of low RoPE frequencies (Hugging Face rope_type "llama3").
struct RopeScaling {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_positions = 8192;
  bool operator==(const RopeScaling&) const = default;
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
  std::optional<RopeScaling> rope_scaling;  // Llama 3.1 and later
  double rotary_fraction = 1;               // the part of each head that RoPE turns
  bool exact_gelu = false;                  // GELU by erf, not its tanh form
  bool qkv_bias = false;                    // biases of q, k and v (Qwen 2)
  bool qk_norm = false;                     // RMSNorm of every head of q and k (Qwen 3)
  int64_t window = 0;                       // a token sees so many at most (Mistral 7B v0.1); 0 = all
  int64_t no_rope_every = 0;                // every n-th layer has no RoPE (SmolLM3); 0 = none
  double embedding_multiplier = 1;          // of embeddings (Granite), as the three below
  double attention_multiplier = 0;          // of attention's scores; 0 = 1/sqrt(head_dim)
  double residual_multiplier = 1;           // of what attention and MLP add
  double logits_scaling = 1;                // logits are divided by it

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
inline constexpr int64_t kMaxVocab = int64_t{1} << 26;
inline constexpr int64_t kMaxSeq = int64_t{1} << 30;

// The MLP width an architecture has when nobody says otherwise: 4 hidden, or what its definition says.
int64_t default_ffn(std::string_view architecture, int64_t hidden);

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
