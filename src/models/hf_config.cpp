#include "models/hf_config.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace sextant {

namespace {

using nlohmann::json;

// What a field of ModelSpec is called in config.json.
struct FieldName {
  std::string_view field, llama, gpt2;
};

constexpr FieldName kFieldNames[] = {
    {"layers", "num_hidden_layers", "n_layer"},
    {"hidden", "hidden_size", "n_embd"},
    {"heads", "num_attention_heads", "n_head"},
    {"kv_heads", "num_key_value_heads", "n_head"},
    {"head_dim", "head_dim", "n_embd"},
    {"ffn", "intermediate_size", "n_inner"},
    {"vocab", "vocab_size", "vocab_size"},
    {"max_seq", "max_position_embeddings", "n_positions"},
    {"norm_eps", "rms_norm_eps", "layer_norm_epsilon"},
    {"init_std", "initializer_range", "initializer_range"},
    {"rope_scaling.original_max_positions", "rope_scaling.original_max_position_embeddings", ""},
};

std::string_view hf_name(std::string_view field, std::string_view architecture) {
  for (const FieldName& name : kFieldNames)
    if (name.field == field) return architecture == "gpt2" ? name.gpt2 : name.llama;
  return field;
}

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : fmt::format("{} of {} entries", value.type_name(), value.size());
}

// Takes values out of one JSON object and collects what is wrong with them. An absent key and null mean the same.
class Reader {
 public:
  Reader(const json& object, std::string place) : object_(object), place_(std::move(place)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }

  int64_t integer(std::string_view key) { return has(key) ? integer(key, 0) : missing(key, "an integer"); }
  int64_t integer(std::string_view key, int64_t otherwise) {
    const json* value = find(key);
    return value ? to_integer(key, *value) : otherwise;
  }
  double number(std::string_view key, double otherwise) {
    const json* value = find(key);
    if (!value) return otherwise;
    if (value->is_number()) return value->get<double>();
    complain(key, fmt::format("got {}", shown(*value)), "a number");
    return otherwise;
  }
  bool flag(std::string_view key, bool otherwise) {
    const json* value = find(key);
    if (!value) return otherwise;
    if (value->is_boolean()) return value->get<bool>();
    complain(key, fmt::format("got {}", shown(*value)), "true or false");
    return otherwise;
  }
  std::string text(std::string_view key, std::string otherwise) {
    const json* value = find(key);
    if (!value) return otherwise;
    if (value->is_string()) return value->get<std::string>();
    complain(key, fmt::format("got {}", shown(*value)), "a string");
    return otherwise;
  }
  std::vector<int64_t> integers(std::string_view key) {
    const json* value = find(key);
    if (!value) return {};
    if (!value->is_array()) return {to_integer(key, *value)};
    std::vector<int64_t> out;
    for (const json& item : *value) out.push_back(to_integer(key, item));
    return out;
  }
  // The object under `key`, or an empty one.
  const json& object(std::string_view key) {
    static const json kEmpty = json::object();
    const json* value = find(key);
    if (!value) return kEmpty;
    if (value->is_object()) return *value;
    complain(key, fmt::format("got {}", shown(*value)), "an object");
    return kEmpty;
  }

  // Features that change the mathematics in a way our models do not know.
  void only(std::string_view key, bool supported) {
    if (flag(key, supported) != supported)
      complain(key, fmt::format("{} is not supported", !supported), fmt::format("{}", supported));
  }
  void only_one_of(std::string_view key, const std::string& otherwise, std::initializer_list<std::string_view> known) {
    std::string got = text(key, otherwise);
    for (std::string_view word : known)
      if (got == word) return;
    complain(key, fmt::format("{} is not supported", shown(json(got))), fmt::format("{}", fmt::join(known, " or ")));
  }

  void complain(std::string_view key, std::string got, std::string expected) {
    complaints_.push_back(
        {.place = fmt::format("{} {}", place_, key), .got = std::move(got), .expected = std::move(expected)});
  }
  void take_complaints_of(const Reader& other) {
    complaints_.insert(complaints_.end(), other.complaints_.begin(), other.complaints_.end());
  }
  const std::vector<Complaint>& complaints() const { return complaints_; }
  const std::string& place() const { return place_; }

 private:
  int64_t to_integer(std::string_view key, const json& value) {
    // Bounded here so that arithmetic on sizes cannot overflow; problems_of knows the real limits.
    constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
    if (value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kLimit)
      return value.get<int64_t>();
    complain(key, fmt::format("got {}", shown(value)), fmt::format("an integer from 0 to {}", kLimit));
    return 0;
  }
  int64_t missing(std::string_view key, std::string_view expected) {
    complain(key, "is missing", std::string(expected));
    return 0;
  }
  const json* find(std::string_view key) const {
    auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  const json& object_;
  std::string place_;
  std::vector<Complaint> complaints_;
};

void read_rope(Reader& reader, ModelSpec& spec) {
  // New files keep everything in rope_parameters, old ones the base outside and the stretching in rope_scaling.
  std::string_view key = reader.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  Reader rope(reader.object(key), fmt::format("{} {}", reader.place(), key));
  spec.rope_theta = rope.number("rope_theta", reader.number("rope_theta", 10000));
  for (Reader* at : {&reader, &rope})
    if (double part = at->number("partial_rotary_factor", 1); part != 1)
      at->complain("partial_rotary_factor", fmt::format("{} is not supported", part), "1");

  std::string_view type_key = rope.has("rope_type") ? "rope_type" : "type";
  rope.only_one_of(type_key, "default", {"default", "llama3"});
  if (rope.text(type_key, "default") == "llama3") {
    for (std::string_view needed : {"factor", "low_freq_factor", "high_freq_factor"})
      if (!rope.has(needed)) rope.complain(needed, "is missing", "a number");
    spec.rope_scaling = RopeScaling{
        .factor = rope.number("factor", 8),
        .low_freq_factor = rope.number("low_freq_factor", 1),
        .high_freq_factor = rope.number("high_freq_factor", 4),
        .original_max_positions = rope.integer("original_max_position_embeddings", spec.max_seq),
    };
  }
  reader.take_complaints_of(rope);
}

ModelSpec read_llama(Reader& reader) {
  ModelSpec spec{.architecture = "llama",
                 .layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .ffn = reader.integer("intermediate_size"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", 2048),
                 .norm_eps = reader.number("rms_norm_eps", 1e-6),
                 .tied_head = reader.flag("tie_word_embeddings", false),
                 .init_std = reader.number("initializer_range", 0.02)};
  spec.kv_heads = reader.integer("num_key_value_heads", spec.heads);
  spec.head_dim = reader.integer("head_dim", spec.heads > 0 ? spec.hidden / spec.heads : 0);
  read_rope(reader, spec);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});  // two names of one function
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  return spec;
}

ModelSpec read_gpt2(Reader& reader) {
  ModelSpec spec{.architecture = "gpt2",
                 .layers = reader.integer("n_layer"),
                 .hidden = reader.integer("n_embd"),
                 .heads = reader.integer("n_head"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("n_positions", 1024),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.heads > 0 ? spec.hidden / spec.heads : 0;
  spec.ffn = reader.integer("n_inner", default_ffn("gpt2", spec.hidden));
  reader.only_one_of("activation_function", "gelu_new", {"gelu_new", "gelu_pytorch_tanh"});  // the same formula
  reader.only("scale_attn_weights", true);
  reader.only("scale_attn_by_inverse_layer_idx", false);
  reader.only("add_cross_attention", false);
  return spec;
}

json parse(std::string_view text, std::string_view place) {
  auto refuse = [&](std::string got) {
    throw UserError({.place = std::string(place), .got = std::move(got), .expected = "a Hugging Face config.json"});
  };
  json document;
  try {
    document = json::parse(text);
  } catch (const json::parse_error& error) {
    refuse(fmt::format("byte {} is not valid JSON", error.byte));
  } catch (const json::out_of_range&) {
    refuse("a number is too large for 64 bits");
  }
  if (!document.is_object()) refuse(fmt::format("got {}", shown(document)));
  return document;
}

}  // namespace

ModelSpec spec_from_hf_config(std::string_view text, std::string_view place) {
  const json document = parse(text, place);
  Reader reader(document, std::string(place));
  std::string type = reader.text("model_type", "");
  if (type != "llama" && type != "gpt2") {
    throw UserError({.place = fmt::format("{} model_type", place),
                     .got = type.empty() ? "is missing" : fmt::format("{} is not supported", shown(json(type))),
                     .expected = "one of gpt2, llama"});
  }
  ModelSpec spec = type == "llama" ? read_llama(reader) : read_gpt2(reader);
  if (std::vector<int64_t> bos = reader.integers("bos_token_id"); !bos.empty()) spec.bos_token = bos.front();
  spec.eos_tokens = reader.integers("eos_token_id");
  if (reader.has("quantization_config"))
    reader.complain("quantization_config", "quantised weights are not supported", "weights in f32, f16 or bf16");

  // Values that could not be read are reported already; what follows from them would only be noise.
  if (reader.complaints().empty()) {
    if (spec.vocab == 0) reader.complain("vocab_size", "got 0", "an integer of at least 1");
    for (SpecProblem& problem : problems_of(spec))
      reader.complain(hf_name(problem.fields.front(), type), std::move(problem.got), std::move(problem.expected));
  }
  if (!reader.complaints().empty()) throw UserError(reader.complaints());
  return spec;
}

namespace {

void write_llama(const ModelSpec& spec, json& out) {
  out["architectures"] = {"LlamaForCausalLM"};
  out["model_type"] = "llama";
  out["num_hidden_layers"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["num_attention_heads"] = spec.heads;
  out["num_key_value_heads"] = spec.kv_heads;
  out["head_dim"] = spec.head_dim;
  out["intermediate_size"] = spec.ffn;
  out["max_position_embeddings"] = spec.max_seq;
  out["rms_norm_eps"] = spec.norm_eps;
  out["hidden_act"] = "silu";
  out["attention_bias"] = false;
  out["attention_dropout"] = 0.0;
  out["mlp_bias"] = false;
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

void write_gpt2(const ModelSpec& spec, json& out) {
  out["architectures"] = {"GPT2LMHeadModel"};
  out["model_type"] = "gpt2";
  out["n_layer"] = spec.layers;
  out["n_embd"] = spec.hidden;
  out["n_head"] = spec.heads;
  out["n_inner"] = spec.ffn;
  out["n_positions"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["activation_function"] = "gelu_new";
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) out[dropout] = 0.0;
}

}  // namespace

std::string hf_config_json(const ModelSpec& spec) {
  BUG_IF(spec.vocab < 1 || !problems_of(spec).empty(), "cannot write the config.json of an unfinished model");
  json out;
  if (spec.architecture == "llama") write_llama(spec, out);
  if (spec.architecture == "gpt2") write_gpt2(spec, out);
  out["vocab_size"] = spec.vocab;
  out["tie_word_embeddings"] = spec.tied_head;
  out["initializer_range"] = spec.init_std;
  out["torch_dtype"] = "float32";
  out["use_cache"] = true;
  out["bos_token_id"] = spec.bos_token ? json(*spec.bos_token) : json();
  out["eos_token_id"] = nullptr;
  if (spec.eos_tokens.size() == 1) out["eos_token_id"] = spec.eos_tokens.front();
  if (spec.eos_tokens.size() > 1) out["eos_token_id"] = spec.eos_tokens;
  return out.dump(2) + "\n";
}

}  // namespace sextant
