#include "models/hf_common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

// Yarn's factor on cosines and sines, from DeepSeek's mscale and mscale_all_dim where a file has both; else the
// default.
double yarn_attention_factor(HfReader& rope, const RopeScaling& scaling) {
  double scores = rope.number("mscale", 0), all = rope.number("mscale_all_dim", 0);
  if (scores == 0 || all == 0 || scaling.factor <= 1) return default_attention_factor(scaling);
  double log = 0.1 * std::log(scaling.factor);
  return (log * scores + 1) / (log * all + 1);
}

// The number that gives the attention_factor beside mscale_all_dim.
double mscale_of(const RopeScaling& scaling) {
  double log = 0.1 * std::log(scaling.factor), all = scaling.mscale_all_dim;
  if (scaling.attention_factor == 1 || log <= 0) return all;
  return (scaling.attention_factor * (log * all + 1) - 1) / log;
}

RopeScaling scaling_in(HfReader& rope, HfReader& reader, RopeType type, const ModelSpec& spec) {
  auto need = [&](std::initializer_list<std::string_view> keys, std::string_view what) {
    for (std::string_view key : keys)
      if (!rope.has(key)) rope.complain(key, "is missing", std::string(what));
  };
  RopeScaling scaling{.type = type};
  // Phi-3's files have it outside; transformers prefers that.
  HfReader& place = reader.has("original_max_position_embeddings") ? reader : rope;
  if (type != RopeType::linear && type != RopeType::dynamic)
    scaling.original_max_positions = place.integer("original_max_position_embeddings", spec.max_seq);
  if (type == RopeType::longrope) {
    need({"short_factor", "long_factor"}, "a list of numbers");
    scaling.short_factor = rope.numbers("short_factor");
    scaling.long_factor = rope.numbers("long_factor");
    scaling.factor = rope.number("factor", static_cast<double>(spec.max_seq) / static_cast<double>(std::max<int64_t>(
                                                                                   1, scaling.original_max_positions)));
  } else {
    need({"factor"}, "a number");
    scaling.factor = rope.number("factor", scaling.factor);
  }
  if (type == RopeType::llama3) {
    need({"low_freq_factor", "high_freq_factor"}, "a number");
    scaling.low_freq_factor = rope.number("low_freq_factor", 1);
    scaling.high_freq_factor = rope.number("high_freq_factor", 4);
  }
  if (type == RopeType::yarn) {
    scaling.beta_fast = rope.number("beta_fast", 32);
    scaling.beta_slow = rope.number("beta_slow", 1);
    scaling.truncate = rope.flag("truncate", true);
    scaling.attention_factor = rope.number("attention_factor", yarn_attention_factor(rope, scaling));
  }
  if (type == RopeType::longrope)
    scaling.attention_factor = rope.number("attention_factor", default_attention_factor(scaling));
  return scaling;
}

json scaling_json(const RopeScaling& scaling) {
  json out = {{"rope_type", word_of(scaling.type)}, {"factor", scaling.factor}};
  if (scaling.mscale_all_dim > 0) out["mscale_all_dim"] = scaling.mscale_all_dim;
  if (scaling.type == RopeType::linear || scaling.type == RopeType::dynamic) return out;
  out["original_max_position_embeddings"] = scaling.original_max_positions;
  if (scaling.type == RopeType::llama3) {
    out["low_freq_factor"] = scaling.low_freq_factor;
    out["high_freq_factor"] = scaling.high_freq_factor;
    return out;
  }
  out["attention_factor"] = scaling.attention_factor;
  if (scaling.type == RopeType::longrope) {
    out["short_factor"] = scaling.short_factor;
    out["long_factor"] = scaling.long_factor;
    return out;
  }
  if (scaling.mscale_all_dim > 0) out["mscale"] = mscale_of(scaling);
  out["beta_fast"] = scaling.beta_fast;
  out["beta_slow"] = scaling.beta_slow;
  out["truncate"] = scaling.truncate;
  return out;
}

RopeChoice rope_in(HfReader& reader, std::string_view key, const ModelSpec& spec, RopePart part) {
  HfReader rope(reader.object(key), fmt::format("{} {}", reader.place(), key));
  rope.only_values();
  RopeChoice choice{.theta = number_of_two(rope, "rope_theta", reader, "rope_theta", spec.rope_theta),
                    .fraction = number_of_two(rope, "partial_rotary_factor", reader, "partial_rotary_factor",
                                              part == RopePart::of_head ? spec.rotary_fraction : 1)};
  if (part == RopePart::whole && choice.fraction != 1)
    (rope.has("partial_rotary_factor") ? rope : reader)
        .complain(
            "partial_rotary_factor",
            fmt::format("{}, which transformers ignores for this model type: it turns whole heads", choice.fraction),
            "1 or no such key; model types that turn a part of each head are phi3, nemotron, glm4_moe and gpt_neox");

  if (rope.has("rope_type") && rope.has("type") && rope.text("rope_type", "") != rope.text("type", ""))
    rope.complain("type",
                  fmt::format("\"{}\", but rope_type is \"{}\"", rope.text("type", ""), rope.text("rope_type", "")),
                  "the same value for both names");
  std::string_view type_key = rope.has("rope_type") ? "rope_type" : "type";
  std::string type = rope.text(type_key, "default");
  if (type == "su") type = word_of(RopeType::longrope);  // its first name
  if (auto known = value_of_word<RopeType>(type))
    choice.scaling = scaling_in(rope, reader, *known, spec);
  else if (type != "default")
    rope.complain(type_key, fmt::format("\"{}\" is not supported", type),
                  fmt::format("one of default, {}", words_text_of<RopeType>()));
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

void read_score_factor(HfReader& reader, ModelSpec& spec) {
  if (!spec.rope_scaling) return;
  std::string_view key = reader.has_entries("rope_parameters") ? "rope_parameters" : "rope_scaling";
  HfReader rope(reader.object(key), fmt::format("{} {}", reader.place(), key));
  spec.rope_scaling->mscale_all_dim = rope.number("mscale_all_dim", 0);
  reader.take_complaints_of(rope);
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
  if (spec.rope_scaling) out["rope_scaling"] = scaling_json(*spec.rope_scaling);
}

void read_biases(HfReader& reader, ModelSpec& spec, MlpBias mlp) {
  spec.qkv_bias = spec.out_bias = reader.flag("attention_bias", false);
  if (mlp == MlpBias::a_key) spec.mlp_bias = reader.flag("mlp_bias", false);
}

void write_biases(const ModelSpec& spec, json& out, MlpBias mlp) {
  out["attention_bias"] = spec.out_bias;
  if (mlp == MlpBias::a_key) out["mlp_bias"] = spec.mlp_bias;
}

void check_biases(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (spec.qkv_bias != spec.out_bias)
    problems.push_back({{"qkv_bias", "out_bias"},
                        "only one of qkv_bias and out_bias is true",
                        "both or none, as Hugging Face's attention_bias"});
}

Activation read_activation(HfReader& reader, std::string_view key, Activation otherwise) {
  std::string name = reader.text(key, std::string(hf_names_of(otherwise).front()));
  if (std::optional<Activation> known = activation_of_hf_name(name)) return *known;
  std::vector<std::string_view> names;
  for (const Choice<Activation>& choice : kActivations)
    for (std::string_view one : hf_names_of(choice.value)) names.push_back(one);
  reader.complain(key, fmt::format("{} is not supported", shown(json(name))),
                  fmt::format("one of {}", fmt::join(names, ", ")));
  return otherwise;
}

std::string_view hf_activation_of(const ModelSpec& spec) {
  return hf_names_of(activation_of(spec)).front();
}

int64_t read_window(HfReader& reader, int64_t otherwise) {
  constexpr std::string_view kKey = "sliding_window";
  if (reader.names(kKey) && !reader.has(kKey)) return 0;
  int64_t window = reader.integer(kKey, otherwise);
  if (window == 0 && reader.has_integer(kKey))
    reader.complain(kKey, "got 0: no token would see any", "an integer of at least 1, or null for no window");
  return window;
}

namespace {

constexpr std::string_view kSliding = "sliding_attention", kFull = "full_attention";

// The first layers, or every n-th one, where the fields for that can say it; else a list.
void set_full_attention_layers(ModelSpec& spec, const std::vector<std::string>& types) {
  spec.full_attention_first = spec.full_attention_every = 0;
  spec.full_attention_layers.clear();
  auto first_with_window = std::ranges::find(types, kSliding), first_full = std::ranges::find(types, kFull);
  spec.full_attention_first = first_with_window - types.begin();
  if (layer_types_of(spec) == types) return;
  spec.full_attention_first = 0;
  spec.full_attention_every = first_full - types.begin() + 1;
  if (layer_types_of(spec) == types) return;
  spec.full_attention_every = 0;
  for (size_t layer = 0; layer < types.size(); ++layer)
    if (types[layer] == kFull) spec.full_attention_layers.push_back(static_cast<int64_t>(layer));
}

}  // namespace

void read_windows(HfReader& reader, ModelSpec& spec, WindowLayers otherwise) {
  bool used = reader.flag("use_sliding_window", false);
  int64_t window = used ? read_window(reader, 4096) : 0;
  std::vector<std::string> types = reader.texts("layer_types");
  bool lists_sliding = std::ranges::find(types, kSliding) != types.end();
  bool alternates = otherwise == WindowLayers::every_other_of_first;
  // transformers refuses these, or computes masks through which no token sees any.
  if (lists_sliding && !used)
    reader.complain("use_sliding_window", "is false, but layer_types has sliding_attention", "true");
  if (used && window == 0 && !reader.has("sliding_window") && (lists_sliding || alternates))
    reader.complain("sliding_window", "is null, but use_sliding_window is true", "an integer of at least 1");
  if (window == 0) return;
  spec.window = window;
  if (reader.has("layer_types")) return read_layer_types(reader, spec);
  int64_t boundary = std::min(reader.integer("max_window_layers", 28), spec.layers);
  if (!alternates) {
    spec.full_attention_first = boundary;
    return;
  }
  std::vector<std::string> ours;
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    ours.emplace_back(layer % 2 == 0 && layer < boundary ? kSliding : kFull);
  set_full_attention_layers(spec, ours);
}

void read_layer_types(HfReader& reader, ModelSpec& spec) {
  std::vector<std::string> types = reader.texts("layer_types");
  bool known = std::ranges::all_of(types, [](const std::string& type) { return type == kSliding || type == kFull; });
  if (known && static_cast<int64_t>(types.size()) == spec.layers) return set_full_attention_layers(spec, types);
  reader.complain("layer_types", known ? fmt::format("a list of {} entries", types.size()) : "other kinds of attention",
                  fmt::format("{} times sliding_attention or full_attention", spec.layers));
}

std::vector<std::string> layer_types_of(const ModelSpec& spec) {
  std::vector<std::string> types;
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    types.emplace_back(window_of_layer(spec, layer) > 0 ? kSliding : kFull);
  return types;
}

void write_windows(const ModelSpec& spec, json& out) {
  out["use_sliding_window"] = spec.window > 0;
  if (spec.window == 0) return;
  out["sliding_window"] = spec.window;
  out["max_window_layers"] = spec.full_attention_first;
  out["layer_types"] = layer_types_of(spec);
}

namespace {

// 1 for layers with RoPE, 0 for the others.
std::vector<int64_t> rope_of_layers(const ModelSpec& spec) {
  std::vector<int64_t> flags;
  for (int64_t layer = 1; layer <= std::min(spec.layers, kMaxLayers); ++layer)
    flags.push_back(spec.no_rope_every > 0 && layer % spec.no_rope_every == 0 ? 0 : 1);
  return flags;
}

}  // namespace

void read_no_rope_layers(HfReader& reader, ModelSpec& spec) {
  spec.no_rope_every = reader.integer("no_rope_layer_interval", 4);  // may be longer than the model
  if (!reader.has("no_rope_layers")) return;
  std::vector<int64_t> flags = reader.integers("no_rope_layers");
  if (auto first = std::find(flags.begin(), flags.end(), 0); first != flags.end())
    spec.no_rope_every = first - flags.begin() + 1;
  else if (spec.no_rope_every <= spec.layers)
    spec.no_rope_every = 0;
  if (flags != rope_of_layers(spec))
    reader.complain("no_rope_layers", "layers without RoPE that do not follow at one interval",
                    fmt::format("{} numbers, 0 for every n-th and 1 for the others", spec.layers));
}

void write_no_rope_layers(const ModelSpec& spec, json& out) {
  out["no_rope_layers"] = rope_of_layers(spec);
  // Classes of transformers divide by it even where no layer is without RoPE.
  out["no_rope_layer_interval"] = spec.no_rope_every > 0 ? spec.no_rope_every : spec.layers + 1;
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
      {"out_bias", "attention_bias"},
  };
}

std::vector<HfName> common_names_but(std::vector<HfName> own) {
  std::vector<HfName> names = common_names();
  for (const HfName& name : own) std::erase_if(names, [&](const HfName& n) { return n.field == name.field; });
  names.insert(names.end(), own.begin(), own.end());
  return names;
}

}  // namespace sextant
