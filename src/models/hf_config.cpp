#include "models/hf_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "models/hf_type.h"
#include "models/models.h"
#include "models/presets.h"

namespace sextant {

namespace {

using nlohmann::json;

const HfType& type_in_file(HfReader& reader) {
  std::string name = reader.text("model_type", "");
  if (const HfType* type = find_hf_type(name)) return *type;
  std::vector<std::string_view> names;
  for (const ModelDef* def : all_models())
    for (const HfType& type : def->hf_types) names.push_back(type.model_type);
  std::string got = fmt::format("{} is not supported", shown(json(name)));
  if (std::string why = why_unsupported(name); !why.empty()) got = fmt::format("{}: {}", shown(json(name)), why);
  throw UserError({.place = fmt::format("{} model_type", reader.place()),
                   .got = name.empty() ? "is missing" : got,
                   .expected = fmt::format("one of {}", fmt::join(names, ", "))});
}

std::string_view architecture_of(const HfType& type) {
  for (const ModelDef* def : all_models())
    for (const HfType& known : def->hf_types)
      if (&known == &type) return def->name;
  BUG("the model type {} has no architecture", type.model_type);
}

std::string_view key_of(std::string_view field, const HfType& type) {
  for (const HfName& name : type.names)
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

struct ConfigOfText {
  json document;
  std::string place;
};

// The section of the text model, where a file describes several models (HfWrapper); else the whole document.
ConfigOfText config_of_text(json document, std::string_view place) {
  for (const ModelDef* def : all_models()) {
    if (!def->hf_wrapper || document.value("model_type", json()) != def->hf_wrapper->model_type) continue;
    std::string key(def->hf_wrapper->section), section_place = fmt::format("{} {}", place, key);
    if (!document.contains(key) || !document[key].is_object())
      throw UserError({.place = section_place,
                       .got = document.contains(key) ? fmt::format("got {}", shown(document[key])) : "is missing",
                       .expected = fmt::format("an object: the model for text of {}", def->hf_wrapper->model_type)});
    json section = document[key];
    if (!section.contains("model_type")) section["model_type"] = def->hf_types.front().model_type;
    // Weights are quantized as a whole.
    for (const char* whole : {"quantization_config", "compression_config"})
      if (document.contains(whole) && !section.contains(whole)) section[whole] = document[whole];
    return {std::move(section), std::move(section_place)};
  }
  return {std::move(document), std::string(place)};
}

// Gives every setting the one name that the readers take; a complaint where two names disagree.
json with_one_name_each(json document, const HfType& type, std::string_view place, std::vector<Complaint>& complaints) {
  for (const HfAlias& alias : type.aliases) {
    auto other = document.find(alias.other);
    if (other == document.end() || other->is_null()) continue;
    json& value = document[std::string(alias.key)];
    if (value.is_null())
      value = *document.find(alias.other);
    else if (value != *document.find(alias.other))
      complaints.push_back(
          {.place = fmt::format("{} {}", place, alias.other),
           .got = fmt::format("{}, but {} is {}", shown(*document.find(alias.other)), alias.key, shown(value)),
           .expected = "the same value for both names"});
  }
  return document;
}

// Blocks of 128 × 128, as DeepSeek-V3 has them; transformers' own default.
bool is_fp8_by_blocks(HfReader& section) {
  if (section.text("quant_method", "") != "fp8" || section.text("fmt", "e4m3") != "e4m3") return false;
  return !section.has("weight_block_size") || section.integers("weight_block_size") == std::vector<int64_t>{128, 128};
}

// Refuses quantization that ckpt/quantized.h does not read, and names its method: gptq, awq, bitsandbytes or any other.
void refuse_quantization(HfReader& reader, const HfType& type) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!reader.has(key)) continue;
    HfReader section(reader.object(key), std::string(key));
    std::string method = section.text("quant_method", "an unnamed method");
    if (is_fp8_by_blocks(section) || (method == "mxfp4" && type.mxfp4_experts)) continue;
    if (method == "fp8") method += " other than e4m3 in blocks of 128 x 128";
    if (section.flag("load_in_8bit", false)) method += " int8";
    if (section.flag("load_in_4bit", false)) method += " 4-bit";
    reader.complain(key, fmt::format("weights quantized by {} are not supported", shown(json(method))),
                    "weights in f32, bf16 or f16: the original model, or one dequantized (model.dequantize() in "
                    "transformers) and saved in bf16, without this key");
  }
}

std::optional<int64_t> padding_of(HfReader& reader, const json& document, const HfType& type, int64_t vocab) {
  const std::optional<HfPadding>& padding = type.padding;
  if (!padding || vocab < 1) return std::nullopt;
  if (!reader.has("pad_token_id")) return reader.names("pad_token_id") ? std::nullopt : padding->token;
  const json& value = document.at("pad_token_id");
  // Like an index in Python: -1 is the last row.
  double id = value.is_number_integer() ? value.get<double>() : static_cast<double>(vocab);
  if (id >= static_cast<double>(-vocab) && id < static_cast<double>(vocab))
    return value.get<int64_t>() + (id < 0 ? vocab : 0);
  reader.complain("pad_token_id", fmt::format("got {}", shown(value)), fmt::format("an id below vocab_size {}", vocab));
  return std::nullopt;
}

}  // namespace

ModelSpec spec_from_hf_config(std::string_view text, std::string_view file) {
  auto [document, place] = config_of_text(parse(text, file), file);
  HfReader as_written(document, std::string(place));
  const HfType& type = type_in_file(as_written);
  std::vector<Complaint> disagreements;
  document = with_one_name_each(std::move(document), type, place, disagreements);
  if (!disagreements.empty()) throw UserError(disagreements);

  HfReader reader(document, std::string(place));
  ModelSpec spec = type.read(reader);
  spec.architecture = architecture_of(type);
  if (std::vector<int64_t> bos = reader.integers("bos_token_id"); !bos.empty()) spec.bos_token = bos.front();
  spec.eos_tokens = reader.integers("eos_token_id");
  spec.padding_token = padding_of(reader, document, type, spec.vocab);
  refuse_quantization(reader, type);

  // Values that could not be read are reported already; what follows from them would only be noise.
  if (reader.complaints().empty()) {
    if (spec.vocab == 0) reader.complain("vocab_size", "got 0", "an integer of at least 1");
    for (SpecProblem& problem : problems_of(spec))
      reader.complain(key_of(problem.fields.front(), type), std::move(problem.got), std::move(problem.expected));
  }
  if (!reader.complaints().empty()) throw UserError(reader.complaints());
  return spec;
}

DropoutRates hf_dropout_rates(std::string_view text, std::string_view file) {
  const auto [document, place] = config_of_text(parse(text, file), file);
  HfReader reader(document, std::string(place));
  const HfType& type = type_in_file(reader);
  DropoutRates rates;
  for (const HfDropout& dropout : type.dropouts) {
    HfReader section(dropout.section.empty() ? document : reader.object(dropout.section),
                     fmt::format("{}{}{}", place, dropout.section.empty() ? "" : " ", dropout.section));
    double rate = section.number(dropout.key, dropout.rate);
    if (!(rate >= 0 && rate < 1))
      section.complain(dropout.key, fmt::format("got {}", rate), "a dropout rate, from 0 to below 1");
    else if (rate > 0 && dropout.sets.empty())
      section.complain(dropout.key, fmt::format("{} is not supported", rate),
                       "0, or rates of your own (model.dropout=0 trains without dropout)");
    for (double DropoutRates::*field : dropout.sets) rates.*field = rate;
    reader.take_complaints_of(section);
  }
  if (!reader.complaints().empty()) throw UserError(reader.complaints());
  return rates;
}

std::vector<int64_t> eos_in_generation_config(std::string_view text, std::string_view place) {
  const json document = parse(text, place);
  HfReader reader(document, std::string(place));
  std::vector<int64_t> ids = reader.integers("eos_token_id");
  if (!reader.complaints().empty()) throw UserError(reader.complaints());
  return ids;
}

namespace {

// The keys of the spec alone.
json keys_of(const ModelSpec& spec, const DropoutRates& rates, const HfType& type) {
  json out;
  out["architectures"] = {type.class_name};
  out["model_type"] = type.model_type;
  type.write(spec, out);
  for (const HfDropout& dropout : type.dropouts) {
    double rate = dropout.sets.empty() ? 0 : rates.*dropout.sets.front();
    if (dropout.section.empty())
      out[std::string(dropout.key)] = rate;
    else  // MPT's class insists on an integer in its section
      out[std::string(dropout.section)][std::string(dropout.key)] = rate == 0 ? json(0) : json(rate);
  }
  out["vocab_size"] = spec.vocab;
  out["tie_word_embeddings"] = spec.tied_head;
  out["initializer_range"] = spec.init_std;
  return out;
}

// Tokens that the spec does not set keep the value of the base, and stay absent where the base has none; without a base
// they are null.
void write_tokens(const ModelSpec& spec, json& out, const json& base) {
  auto write = [&](const char* key, json value) {
    if (!value.is_null() || base.empty()) out[key] = std::move(value);
  };
  write("bos_token_id", spec.bos_token ? json(*spec.bos_token) : json());
  write("eos_token_id", spec.eos_tokens.empty()       ? json()
                        : spec.eos_tokens.size() == 1 ? json(spec.eos_tokens.front())
                                                      : json(spec.eos_tokens));
  if (!base.contains("pad_token_id")) write("pad_token_id", spec.padding_token ? json(*spec.padding_token) : json());
}

std::string_view torch_name_of(DType dtype) {
  if (dtype == DType::bf16) return "bfloat16";
  if (dtype == DType::f16) return "float16";
  BUG_IF(dtype != DType::f32, "weights are not written as {}", name_of(dtype));
  return "float32";
}

// The base without what the keys of the spec say under other names.
json without_other_names(json base, const HfType& type) {
  if (base.value("model_type", json()) != type.model_type) return json::object();
  for (const HfAlias& alias : type.aliases) base.erase(std::string(alias.other));
  for (const char* key : {"rope_parameters", "rope_scaling", "partial_rotary_factor"}) base.erase(key);
  base.erase("quantization_config");  // weights are written as plain numbers
  return base;
}

}  // namespace

std::string hf_config_json(const ModelSpec& spec, std::string_view base_text, DType weights,
                           const DropoutRates& dropout) {
  BUG_IF(spec.vocab < 1 || !problems_of(spec).empty(), "cannot write the config.json of an unfinished model");
  const HfType& type = hf_type_of(spec);
  json base = base_text.empty()
                  ? json::object()
                  : without_other_names(config_of_text(parse(base_text, "config.json"), "config.json").document, type);
  json out = base;
  out.update(keys_of(spec, dropout, type), true);
  write_tokens(spec, out, base);
  // The type of the tensors saved with it; transformers 5 calls the key dtype, and reads both names.
  out[base.contains("dtype") ? "dtype" : "torch_dtype"] = torch_name_of(weights);
  if (base.contains("dtype")) out.erase("torch_dtype");
  if (!base.contains("use_cache")) out["use_cache"] = true;
  return out.dump(2) + "\n";
}

}  // namespace sextant
