// ModelSpec: everything that decides a model's shape and mathematics, and nothing about how it is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;   // = heads unless grouped-query attention
  int64_t head_dim = 0;   // = hidden / heads unless given
  int64_t ffn = 0;        // width of the MLP
  int64_t vocab = 0;
  int64_t max_seq = 0;    // positions the model may see
  double norm_eps = 1e-5;
  double rope_theta = 10000;                // llama
  std::optional<RopeScaling> rope_scaling;  // llama 3.1 and later
  bool tied_head = false;                   // the output head is the embedding matrix
  double init_std = 0.02;
  std::optional<int64_t> bos_token;
  std::vector<int64_t> eos_tokens;
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace sextant
