// Model types that name their fields as Llama's config.json does.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/hf_format.h"

namespace sextant {

namespace {

using nlohmann::json;

enum class Part { whole, of_head };  // what RoPE may turn

// How RoPE turns the heads, as one of the two objects of a file says.
struct RopeChoice {
  double theta = 10000;
  double fraction = 1;
  std::optional<RopeScaling> scaling;
  bool operator==(const RopeChoice&) const = default;
};

RopeChoice rope_in(HfReader& reader, std::string_view key, const ModelSpec& spec, Part part) {
  HfReader rope(reader.object(key), fmt::format("{} {}", reader.place(), key));
  rope.only_values();
  RopeChoice choice{.theta = number_of_two(rope, "rope_theta", reader, "rope_theta", 10000),
                    .fraction = number_of_two(rope, "partial_rotary_factor", reader, "partial_rotary_factor",
                                              part == Part::of_head ? spec.rotary_fraction : 1)};
  if (part == Part::whole && choice.fraction != 1)
    (rope.has("partial_rotary_factor") ? rope : reader)
        .complain("partial_rotary_factor", fmt::format("{} is not supported", choice.fraction), "1");

  if (rope.has("rope_type") && rope.has("type") && rope.text("rope_type", "") != rope.text("type", ""))
    rope.complain("type",
                  fmt::format("\"{}\", but rope_type is \"{}\"", rope.text("type", ""), rope.text("rope_type", "")),
                  "the same value for both names");
  std::string_view type_key = rope.has("rope_type") ? "rope_type" : "type";
  rope.only_one_of(type_key, "default", {"default", "llama3"});
  if (rope.text(type_key, "default") == "llama3") {
    for (std::string_view needed : {"factor", "low_freq_factor", "high_freq_factor"})
      if (!rope.has(needed)) rope.complain(needed, "is missing", "a number");
    choice.scaling = RopeScaling{
        .factor = rope.number("factor", 8),
        .low_freq_factor = rope.number("low_freq_factor", 1),
        .high_freq_factor = rope.number("high_freq_factor", 4),
        .original_max_positions = rope.integer("original_max_position_embeddings", spec.max_seq),
    };
  }
  reader.take_complaints_of(rope);
  return choice;
}

void read_rope(HfReader& reader, ModelSpec& spec, Part part) {
  // New files keep everything in rope_parameters, old ones the base outside and the stretching in rope_scaling.
  // Versions of transformers differ in which of the two they take where a file has both.
  bool is_new = reader.has_entries("rope_parameters"), is_old = reader.has_entries("rope_scaling");
  RopeChoice choice = rope_in(reader, is_new ? "rope_parameters" : "rope_scaling", spec, part);
  if (is_new && is_old && reader.complaints().empty() && !(rope_in(reader, "rope_scaling", spec, part) == choice))
    reader.complain("rope_scaling",
                    fmt::format("{} differs from rope_parameters {}", shown(reader.object("rope_scaling")),
                                shown(reader.object("rope_parameters"))),
                    "the same meaning, or one of the two only");
  spec.rope_theta = choice.theta;
  if (part == Part::of_head) spec.rotary_fraction = choice.fraction;
  spec.rope_scaling = choice.scaling;
}

// What transformers takes where a file says nothing.
struct Defaults {
  int64_t max_seq = 2048;
  int64_t kv_heads = 0;  // 0 = heads
  int64_t head_dim = 0;  // 0 = hidden / heads
};

ModelSpec read_sizes(HfReader& reader, const Defaults& defaults) {
  ModelSpec spec{.architecture = "llama",
                 .layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .ffn = reader.integer("intermediate_size"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", defaults.max_seq),
                 .norm_eps = reader.number("rms_norm_eps", 1e-6),
                 .tied_head = reader.flag("tie_word_embeddings", false),
                 .init_std = reader.number("initializer_range", 0.02)};
  int64_t even = spec.heads > 0 ? spec.hidden / spec.heads : 0;
  // Some name it as null, which is to say heads, whatever the default of the type is.
  bool kv_is_null = reader.names("num_key_value_heads") && !reader.has("num_key_value_heads");
  spec.kv_heads =
      reader.integer("num_key_value_heads", defaults.kv_heads > 0 && !kv_is_null ? defaults.kv_heads : spec.heads);
  spec.head_dim = reader.integer("head_dim", defaults.head_dim > 0 ? defaults.head_dim : even);
  return spec;
}

ModelSpec read_llama_like(HfReader& reader, const Defaults& defaults) {
  ModelSpec spec = read_sizes(reader, defaults);
  read_rope(reader, spec, Part::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});  // two names of one function
  return spec;
}

ModelSpec read_llama(HfReader& reader) {
  ModelSpec spec = read_llama_like(reader, {});
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  return spec;
}

ModelSpec read_mistral(HfReader& reader) {
  ModelSpec spec = read_llama_like(reader, {.max_seq = 131072, .kv_heads = 8});
  spec.hf_type = "mistral";
  constexpr int64_t kWindow = 4096;  // where a file does not name one, which is not the same as null
  spec.window = reader.integer("sliding_window", reader.names("sliding_window") ? 0 : kWindow);
  return spec;
}

ModelSpec read_qwen2(HfReader& reader) {
  ModelSpec spec = read_llama_like(reader, {.max_seq = 32768});
  spec.qkv_bias = true;
  reader.only("use_sliding_window", false);
  return spec;
}

ModelSpec read_qwen3(HfReader& reader) {
  ModelSpec spec = read_llama_like(reader, {.max_seq = 32768, .head_dim = 128});
  spec.qk_norm = true;
  reader.only("attention_bias", false);
  reader.only("use_sliding_window", false);
  return spec;
}

ModelSpec read_nemotron(HfReader& reader) {
  ModelSpec spec = read_sizes(reader, {.max_seq = 4096});
  spec.architecture = "nemotron";
  spec.norm_eps = reader.number("norm_eps", 1e-5);
  spec.init_std = reader.number("initializer_range", 0.0134);
  spec.rotary_fraction = 0.5;
  read_rope(reader, spec, Part::of_head);
  reader.only_one_of("hidden_act", "relu2", {"relu2"});
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  return spec;
}

ModelSpec read_palm(HfReader& reader) {
  ModelSpec spec = read_sizes(reader, {.kv_heads = 1});
  spec.architecture = "palm";
  read_rope(reader, spec, Part::whole);
  return spec;
}

void write_sizes(const ModelSpec& spec, json& out) {
  out["num_hidden_layers"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["num_attention_heads"] = spec.heads;
  out["num_key_value_heads"] = spec.kv_heads;
  out["head_dim"] = spec.head_dim;
  out["intermediate_size"] = spec.ffn;
  out["max_position_embeddings"] = spec.max_seq;
  out["rms_norm_eps"] = spec.norm_eps;
  out["hidden_act"] = "silu";
  // The older spelling: readers of every age understand it.
  out["rope_theta"] = spec.rope_theta;
  out["rope_scaling"] = nullptr;
  if (const auto& scaling = spec.rope_scaling) {
    out["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", scaling->factor},
                           {"low_freq_factor", scaling->low_freq_factor},
                           {"high_freq_factor", scaling->high_freq_factor},
                           {"original_max_position_embeddings", scaling->original_max_positions}};
  }
}

void write_llama(const ModelSpec& spec, json& out) {
  write_sizes(spec, out);
  out["attention_bias"] = false;
  out["mlp_bias"] = false;
}

void write_mistral(const ModelSpec& spec, json& out) {
  write_sizes(spec, out);
  out["sliding_window"] = spec.window > 0 ? json(spec.window) : json();  // absent would mean 4096
}

void write_qwen2(const ModelSpec& spec, json& out) {
  write_sizes(spec, out);
  out["use_sliding_window"] = false;
}

void write_qwen3(const ModelSpec& spec, json& out) {
  write_sizes(spec, out);
  out["attention_bias"] = false;
  out["use_sliding_window"] = false;
}

void write_nemotron(const ModelSpec& spec, json& out) {
  write_llama(spec, out);
  out.erase("rms_norm_eps");
  out["norm_eps"] = spec.norm_eps;
  out["partial_rotary_factor"] = spec.rotary_fraction;
  out["hidden_act"] = "relu2";
}

constexpr HfFormat::Name kNames[] = {
    {"layers", "num_hidden_layers"},
    {"hidden", "hidden_size"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"ffn", "intermediate_size"},
    {"vocab", "vocab_size"},
    {"max_seq", "max_position_embeddings"},
    {"norm_eps", "rms_norm_eps"},
    {"init_std", "initializer_range"},
    {"rotary_fraction", "partial_rotary_factor"},
    {"window", "sliding_window"},
    {"rope_scaling.original_max_positions", "rope_scaling.original_max_position_embeddings"},
};

}  // namespace

std::span<const HfFormat> llama_formats() {
  static constexpr HfFormat kFormats[] = {
      {"llama", "LlamaForCausalLM", read_llama, write_llama, kNames},
      {"mistral", "MistralForCausalLM", read_mistral, write_mistral, kNames},
      {"qwen2", "Qwen2ForCausalLM", read_qwen2, write_qwen2, kNames},
      {"qwen3", "Qwen3ForCausalLM", read_qwen3, write_qwen3, kNames},
      {"nemotron", "NemotronForCausalLM", read_nemotron, write_nemotron, kNames},
      {"palm", "PalmForCausalLM", read_palm, write_sizes, kNames},  // ours: transformers has none
  };
  return kFormats;
}

}  // namespace sextant
