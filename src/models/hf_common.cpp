#include "models/hf_common.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sextant {

using nlohmann::json;

namespace {

// How RoPE turns the heads, as one of the two objects of a file says.
struct RopeChoice {
  double theta = 10000;
  double fraction = 1;
  std::optional<RopeScaling> scaling;
  bool operator==(const RopeChoice&) const = default;
};

RopeChoice rope_in(HfReader& reader, std::string_view key, const ModelSpec& spec, RopePart part) {
  HfReader rope(reader.object(key), fmt::format("{} {}", reader.place(), key));
  rope.only_values();
  RopeChoice choice{.theta = number_of_two(rope, "rope_theta", reader, "rope_theta", spec.rope_theta),
                    .fraction = number_of_two(rope, "partial_rotary_factor", reader, "partial_rotary_factor",
                                              part == RopePart::of_head ? spec.rotary_fraction : 1)};
  if (part == RopePart::whole && choice.fraction != 1)
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

}  // namespace

void read_rope(HfReader& reader, ModelSpec& spec, RopePart part) {
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
  if (part == RopePart::of_head) spec.rotary_fraction = choice.fraction;
  spec.rope_scaling = choice.scaling;
}

ModelSpec read_common(HfReader& reader, const HfDefaults& defaults) {
  ModelSpec spec{.layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .ffn = reader.integer("intermediate_size"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", defaults.max_seq),
                 .norm_eps = reader.number("rms_norm_eps", defaults.norm_eps),
                 .rope_theta = defaults.rope_theta,
                 .tied_head = reader.flag("tie_word_embeddings", defaults.tied_head),
                 .init_std = reader.number("initializer_range", 0.02)};
  int64_t even = spec.heads > 0 ? spec.hidden / spec.heads : 0;
  // Some name it as null, which is to say heads, whatever the default of the type is.
  bool kv_is_null = reader.names("num_key_value_heads") && !reader.has("num_key_value_heads");
  spec.kv_heads =
      reader.integer("num_key_value_heads", defaults.kv_heads > 0 && !kv_is_null ? defaults.kv_heads : spec.heads);
  spec.head_dim = reader.integer("head_dim", defaults.head_dim > 0 ? defaults.head_dim : even);
  return spec;
}

void derive_sizes(ModelSpec& spec) {
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.heads > 0 ? spec.hidden / spec.heads : 0;
  spec.ffn = 4 * spec.hidden;
}

void write_common(const ModelSpec& spec, json& out) {
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

std::vector<HfName> common_names() {
  return {
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
}

std::vector<HfName> common_names_but(std::vector<HfName> own) {
  std::vector<HfName> names = common_names();
  for (const HfName& name : own) std::erase_if(names, [&](const HfName& n) { return n.field == name.field; });
  names.insert(names.end(), own.begin(), own.end());
  return names;
}

}  // namespace sextant
