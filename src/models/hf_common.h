// Keys of config.json that most model types share: sizes by their usual names, and RoPE. Where a type differs it
// changes what these read and write.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "models/hf_type.h"

namespace sextant {

// Defaults of transformers for keys that a file does not set.
struct HfDefaults {
  int64_t max_seq = 2048;
  int64_t kv_heads = 0;  // 0 = heads
  int64_t head_dim = 0;  // 0 = hidden / heads
  double norm_eps = 1e-6;
  bool tied_head = false;
  double rope_theta = 10000;
};

// num_hidden_layers, hidden_size, num_attention_heads, num_key_value_heads, head_dim, intermediate_size, vocab_size,
// max_position_embeddings, rms_norm_eps, tie_word_embeddings, initializer_range.
ModelSpec read_common(HfReader& reader, const HfDefaults& defaults);

// Those with their own names for heads and MLP: sizes that follow from `heads` and `hidden`.
void derive_sizes(ModelSpec& spec);

enum class RopePart : uint8_t { whole, of_head };  // what RoPE may turn

// rope_parameters of new files, or rope_theta and rope_scaling of old ones. What is absent is as the spec has it.
void read_rope(HfReader& reader, ModelSpec& spec, RopePart part);

// mscale_all_dim of either object, by which DeepSeek's models also scale the scores of attention. After read_rope.
void read_score_factor(HfReader& reader, ModelSpec& spec);

// The keys of read_common and read_rope but vocab_size, tie_word_embeddings and initializer_range, which all types
// have.
void write_common(const ModelSpec& spec, nlohmann::json& out);

// attention_bias, which is one of q, k and v and of attention's output, and mlp_bias where the type has that.
enum class MlpBias : uint8_t { no_key, a_key };
void read_biases(HfReader& reader, ModelSpec& spec, MlpBias mlp);
void write_biases(const ModelSpec& spec, nlohmann::json& out, MlpBias mlp);
void check_biases(const ModelSpec& spec, std::vector<SpecProblem>& problems);

// The function inside an MLP, under `key`; a complaint where it is none of Activation's.
Activation read_activation(HfReader& reader, std::string_view key, Activation otherwise);
std::string_view hf_activation_of(const ModelSpec& spec);

// sliding_window: `otherwise` where the file does not name it, 0 where it says null, which is no window.
int64_t read_window(HfReader& reader, int64_t otherwise);
// Which layers of the first max_window_layers, or after them, have the window where a file has no layer_types.
enum class WindowLayers : uint8_t {
  after_first,           // all after them: Qwen 2 and 3
  every_other_of_first,  // of them, the first and every other one: Qwen 2 with experts
};
// use_sliding_window, sliding_window, max_window_layers and layer_types.
void read_windows(HfReader& reader, ModelSpec& spec, WindowLayers otherwise);
// layer_types alone, of a model with a window.
void read_layer_types(HfReader& reader, ModelSpec& spec);
void write_windows(const ModelSpec& spec, nlohmann::json& out);
std::vector<std::string> layer_types_of(const ModelSpec& spec);

// no_rope_layers, which says layer by layer which have RoPE, else no_rope_layer_interval, as SmolLM3 and Llama 4 have
// them.
void read_no_rope_layers(HfReader& reader, ModelSpec& spec);
void write_no_rope_layers(const ModelSpec& spec, nlohmann::json& out);

std::vector<HfName> common_names();
// With some of them replaced, or added.
std::vector<HfName> common_names_but(std::vector<HfName> own);

}  // namespace sextant
