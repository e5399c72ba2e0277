#include "models/hf_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "models/hf_format.h"
#include "models/presets.h"

namespace sextant {

namespace {

using nlohmann::json;

std::vector<HfFormat> all_formats() {
  std::vector<HfFormat> formats(gpt_formats().begin(), gpt_formats().end());
  formats.insert(formats.end(), llama_formats().begin(), llama_formats().end());
  return formats;
}

HfFormat format_named(std::string_view model_type) {
  for (const HfFormat& format : all_formats())
    if (format.model_type == model_type) return format;
  BUG("there is no model type {}", model_type);
}

// llama's options make it a model of another name.
HfFormat format_of(const ModelSpec& spec) {
  if (spec.qkv_bias) return format_named("qwen2");
  if (spec.qk_norm) return format_named("qwen3");
  if (spec.window > 0) return format_named("mistral");
  return format_named(spec.architecture == "neox" ? "gpt_neox" : spec.architecture);
}

HfFormat format_in_file(HfReader& reader) {
  std::string type = reader.text("model_type", "");
  std::vector<std::string_view> names;
  for (const HfFormat& format : all_formats()) {
    if (format.model_type == type) return format;
    names.push_back(format.model_type);
  }
  std::string got = fmt::format("{} is not supported", shown(json(type)));
  if (std::string why = why_unsupported(type); !why.empty()) got = fmt::format("{}: {}", shown(json(type)), why);
  throw UserError({.place = fmt::format("{} model_type", reader.place()),
                   .got = type.empty() ? "is missing" : got,
                   .expected = fmt::format("one of {}", fmt::join(names, ", "))});
}

std::string_view key_of(std::string_view field, const HfFormat& format) {
  for (const HfFormat::Name& name : format.names)
    if (name.field == field) return name.key;
  return field;
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
  HfReader reader(document, std::string(place));
  const HfFormat format = format_in_file(reader);
  ModelSpec spec = format.read(reader);
  if (std::vector<int64_t> bos = reader.integers("bos_token_id"); !bos.empty()) spec.bos_token = bos.front();
  spec.eos_tokens = reader.integers("eos_token_id");
  if (reader.has("quantization_config"))
    reader.complain("quantization_config", "quantised weights are not supported", "weights in f32, f16 or bf16");

  // Values that could not be read are reported already; what follows from them would only be noise.
  if (reader.complaints().empty()) {
    if (spec.vocab == 0) reader.complain("vocab_size", "got 0", "an integer of at least 1");
    for (SpecProblem& problem : problems_of(spec))
      reader.complain(key_of(problem.fields.front(), format), std::move(problem.got), std::move(problem.expected));
  }
  if (!reader.complaints().empty()) throw UserError(reader.complaints());
  return spec;
}

std::string hf_config_json(const ModelSpec& spec) {
  BUG_IF(spec.vocab < 1 || !problems_of(spec).empty(), "cannot write the config.json of an unfinished model");
  const HfFormat format = format_of(spec);
  json out;
  out["architectures"] = {format.class_name};
  out["model_type"] = format.model_type;
  format.write(spec, out);
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
