// Model types of the GPT kind, each with names of its own for the same fields.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/hf_format.h"

namespace sextant {

namespace {

using nlohmann::json;

// What such a model's heads and MLP are unless a file says otherwise.
void derive_sizes(ModelSpec& spec) {
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.heads > 0 ? spec.hidden / spec.heads : 0;
  spec.ffn = default_ffn(spec.architecture, spec.hidden);
}

ModelSpec read_gpt2(HfReader& reader) {
  ModelSpec spec{.architecture = "gpt2",
                 .layers = reader.integer("n_layer"),
                 .hidden = reader.integer("n_embd"),
                 .heads = reader.integer("n_head"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("n_positions", 1024),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  spec.ffn = reader.integer("n_inner", spec.ffn);
  reader.only_one_of("activation_function", "gelu_new", {"gelu_new", "gelu_pytorch_tanh"});  // the same formula
  reader.only("scale_attn_weights", true);
  reader.only("scale_attn_by_inverse_layer_idx", false);
  reader.only("add_cross_attention", false);
  return spec;
}

void write_gpt2(const ModelSpec& spec, json& out) {
  out["n_layer"] = spec.layers;
  out["n_embd"] = spec.hidden;
  out["n_head"] = spec.heads;
  out["n_inner"] = spec.ffn;
  out["n_positions"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["activation_function"] = "gelu_new";
}

ModelSpec read_neox(HfReader& reader) {
  ModelSpec spec{.architecture = "neox",
                 .layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", 2048),
                 .norm_eps = reader.number("layer_norm_eps", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", false),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  spec.ffn = reader.integer("intermediate_size", 24576);
  HfReader rope(reader.object("rope_parameters"), fmt::format("{} rope_parameters", reader.place()));
  spec.rope_theta = number_of_two(rope, "rope_theta", reader, "rotary_emb_base", 10000);
  spec.rotary_fraction = number_of_two(rope, "partial_rotary_factor", reader, "rotary_pct", 0.25);
  rope.only_one_of("rope_type", "default", {"default"});
  reader.take_complaints_of(rope);
  if (reader.has("rope_scaling")) reader.complain("rope_scaling", "is not supported", "null");
  // The last three are one formula.
  reader.only_one_of("hidden_act", "gelu", {"gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh"});
  spec.exact_gelu = reader.text("hidden_act", "gelu") == "gelu";
  reader.only("use_parallel_residual", true);
  reader.only("attention_bias", true);
  return spec;
}

void write_neox(const ModelSpec& spec, json& out) {
  out["num_hidden_layers"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["num_attention_heads"] = spec.heads;
  out["intermediate_size"] = spec.ffn;
  out["max_position_embeddings"] = spec.max_seq;
  out["layer_norm_eps"] = spec.norm_eps;
  out["hidden_act"] = spec.exact_gelu ? "gelu" : "gelu_fast";
  out["rotary_pct"] = spec.rotary_fraction;
  out["rotary_emb_base"] = spec.rope_theta;
  out["use_parallel_residual"] = true;
  out["attention_bias"] = true;
}

ModelSpec read_opt(HfReader& reader) {
  ModelSpec spec{.architecture = "opt",
                 .layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", 2048),
                 .norm_eps = 1e-5,
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("init_std", 0.02)};
  derive_sizes(spec);
  spec.ffn = reader.integer("ffn_dim", 3072);
  reader.only_one_of("activation_function", "relu", {"relu"});
  // OPT-350M norms behind each half and has a narrower embedding; no other OPT does.
  reader.only("do_layer_norm_before", true);
  reader.only("_remove_final_layer_norm", false);
  if (int64_t width = reader.integer("word_embed_proj_dim", spec.hidden); width != spec.hidden)
    reader.complain("word_embed_proj_dim", fmt::format("{} is not supported", width),
                    fmt::format("hidden_size {}", spec.hidden));
  reader.only("enable_bias", true);
  reader.only("layer_norm_elementwise_affine", true);
  return spec;
}

void write_opt(const ModelSpec& spec, json& out) {
  out["num_hidden_layers"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["word_embed_proj_dim"] = spec.hidden;
  out["num_attention_heads"] = spec.heads;
  out["ffn_dim"] = spec.ffn;
  out["max_position_embeddings"] = spec.max_seq;
  out["activation_function"] = "relu";
  out["do_layer_norm_before"] = true;
  out["init_std"] = spec.init_std;
}

ModelSpec read_bloom(HfReader& reader) {
  ModelSpec spec{.architecture = "bloom",
                 .layers = reader.integer("n_layer"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("n_head"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("seq_length", 2048),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  reader.only("apply_residual_connection_post_layernorm", false);
  return spec;
}

void write_bloom(const ModelSpec& spec, json& out) {
  out["n_layer"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["n_head"] = spec.heads;
  out["seq_length"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["apply_residual_connection_post_layernorm"] = false;
}

void read_mpt_attention(HfReader& reader) {
  HfReader attention(reader.object("attn_config"), fmt::format("{} attn_config", reader.place()));
  attention.only_one_of("attn_type", "multihead_attention", {"multihead_attention"});
  attention.only("alibi", true);
  attention.only("qk_ln", false);
  attention.only("prefix_lm", false);
  attention.only("attn_uses_sequence_id", false);
  for (std::string_view key : {"clip_qkv", "softmax_scale"})
    if (attention.has(key)) attention.complain(key, "is not supported", "null");
  if (double most = attention.number("alibi_bias_max", 8); most != 8)
    attention.complain("alibi_bias_max", fmt::format("{} is not supported", most), "8");
  reader.take_complaints_of(attention);
}

ModelSpec read_mpt(HfReader& reader) {
  ModelSpec spec{.architecture = "mpt",
                 .layers = reader.integer("n_layers"),
                 .hidden = reader.integer("d_model"),
                 .heads = reader.integer("n_heads"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_seq_len", 2048),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  if (int64_t ratio = reader.integer("expansion_ratio", 4); ratio != 4)
    reader.complain("expansion_ratio", fmt::format("{} is not supported", ratio), "4");
  reader.only("no_bias", true);
  if (reader.has("logit_scale")) reader.complain("logit_scale", "is not supported", "null");
  read_mpt_attention(reader);
  return spec;
}

void write_mpt(const ModelSpec& spec, json& out) {
  out["n_layers"] = spec.layers;
  out["d_model"] = spec.hidden;
  out["n_heads"] = spec.heads;
  out["expansion_ratio"] = 4;
  out["max_seq_len"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["no_bias"] = true;
  out["learned_pos_emb"] = false;
  out["attn_config"] = {{"alibi", true}, {"alibi_bias_max", 8}, {"attn_type", "multihead_attention"}};
}

constexpr HfFormat::Name kGpt2Names[] = {
    {"layers", "n_layer"},
    {"hidden", "n_embd"},
    {"heads", "n_head"},
    {"kv_heads", "n_head"},
    {"head_dim", "n_embd"},
    {"ffn", "n_inner"},
    {"vocab", "vocab_size"},
    {"max_seq", "n_positions"},
    {"norm_eps", "layer_norm_epsilon"},
    {"init_std", "initializer_range"},
};
constexpr HfFormat::Name kNeoxNames[] = {
    {"layers", "num_hidden_layers"},        {"hidden", "hidden_size"},
    {"heads", "num_attention_heads"},       {"head_dim", "hidden_size"},
    {"ffn", "intermediate_size"},           {"vocab", "vocab_size"},
    {"max_seq", "max_position_embeddings"}, {"norm_eps", "layer_norm_eps"},
    {"init_std", "initializer_range"},      {"rotary_fraction", "rotary_pct"},
    {"rope_theta", "rotary_emb_base"},
};
constexpr HfFormat::Name kOptNames[] = {
    {"layers", "num_hidden_layers"},
    {"hidden", "hidden_size"},
    {"heads", "num_attention_heads"},
    {"head_dim", "hidden_size"},
    {"ffn", "ffn_dim"},
    {"vocab", "vocab_size"},
    {"max_seq", "max_position_embeddings"},
};
constexpr HfFormat::Name kBloomNames[] = {
    {"layers", "n_layer"},
    {"hidden", "hidden_size"},
    {"heads", "n_head"},
    {"head_dim", "hidden_size"},
    {"vocab", "vocab_size"},
    {"max_seq", "seq_length"},
    {"norm_eps", "layer_norm_epsilon"},
    {"init_std", "initializer_range"},
};
constexpr HfFormat::Name kMptNames[] = {
    {"layers", "n_layers"},
    {"hidden", "d_model"},
    {"heads", "n_heads"},
    {"head_dim", "d_model"},
    {"vocab", "vocab_size"},
    {"max_seq", "max_seq_len"},
    {"norm_eps", "layer_norm_epsilon"},
    {"init_std", "initializer_range"},
};

}  // namespace

std::span<const HfFormat> gpt_formats() {
  static constexpr HfFormat kFormats[] = {
      {"gpt2", "GPT2LMHeadModel", read_gpt2, write_gpt2, kGpt2Names},
      {"gpt_neox", "GPTNeoXForCausalLM", read_neox, write_neox, kNeoxNames},
      {"opt", "OPTForCausalLM", read_opt, write_opt, kOptNames},
      {"bloom", "BloomForCausalLM", read_bloom, write_bloom, kBloomNames},
      {"mpt", "MptForCausalLM", read_mpt, write_mpt, kMptNames},
  };
  return kFormats;
}

}  // namespace sextant
