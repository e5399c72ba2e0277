#include "config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/hub_hint.h"
#include "base/nearest.h"
#include "base/toml_document.h"
#include "config/complaints.h"
#include "config/schema.h"
#include "models/hf_adapter.h"
#include "models/hf_config.h"
#include "models/models.h"
#include "models/presets.h"
#include "models/savable.h"
#include "models/upcycle.h"

namespace sextant {

namespace {

std::string model_key(std::string_view field) {
  return fmt::format("model.{}", field);
}

ModelSpec start_from_preset(const RunConfig& run, Complaints& complaints) {
  if (const Preset* preset = find_preset(*run.model.preset)) return preset->spec;
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  std::string why = why_unsupported(*run.model.preset);
  std::string meant = why.empty() ? did_you_mean(*run.model.preset, std::span<const std::string_view>(names)) : "";
  complaints.add(run, {"model.preset"},
                 {.got = fmt::format("got {}{}{}", toml_quoted(*run.model.preset), why.empty() ? "" : ": ", why),
                  .expected = fmt::format("one of the {} presets that `sextant list models` lists, such as {} or {}",
                                          names.size(), names.front(), find_preset("llama3.1-8b")->name),
                  .hint = meant});
  complaints.distrust("model.preset");
  return {};
}

ModelSpec start_from_directory(const RunConfig& run, Complaints& complaints) {
  const std::filesystem::path file = std::filesystem::path(*run.model.from) / "config.json";
  ModelSpec spec;
  try {
    spec = spec_from_hf_config(read_file(file), file.string());
  } catch (const UserError& error) {
    if (auto adapter = complaint_about_adapter(*run.model.from))
      complaints.add(run, {"model.from"},
                     {.got = fmt::format("{}: {}", adapter->place, adapter->got),
                      .expected = adapter->expected,
                      .hint = adapter->hint});
    else if (error.complaints().size() == 1 && !std::filesystem::exists(file))
      complaints.add(run, {"model.from"},
                     {.got = fmt::format("file not found: {}", file.string()),
                      .expected = "a Hugging Face model directory",
                      .hint = model_download_hint(*run.model.from)});
    else
      complaints.add(error.complaints());
    complaints.distrust("model.from");
    return {};
  }
  auto refuse = [&](std::string_view field) {
    complaints.add(run, {model_key(field)},
                   {.got = "is decided by the weights of model.from", .expected = "one of the two"});
  };
  const ModelDef* target = find_model(run.model.given<&ModelSpec::architecture>().value_or(""));
  bool upcycles = target && target->has_experts && !spec.experts;
  for (const auto& [field, value] : run.model.fields) {
    bool is_of_experts = field->name.starts_with("experts.") && field != &model_field<&ExpertsSpec::ffn>();
    bool chosen_anew = upcycles && (is_of_experts || field == &model_field<&ModelSpec::architecture>());
    if (field->beside_weights == BesideWeights::decided && !chosen_anew) refuse(field->name);
  }
  if (upcycles) spec = upcycled_spec(spec, *target);
  // Modules of multi-token prediction are left alone unless they are asked for.
  int64_t depths = run.model.given<&ModelSpec::mtp_depths>().value_or(0);
  if (depths > 0 && depths != spec.mtp_depths)
    complaints.add(run, {"model.mtp.depths"},
                   {.got = fmt::format("got {}, but model.from has {}", depths, spec.mtp_depths),
                    .expected = spec.mtp_depths > 0 ? fmt::format("{} or 0", spec.mtp_depths) : "0"});
  spec.mtp_depths = 0;
  // The head of a tied model is in the file or is not; one that is not tied is.
  if (!spec.tied_head && run.model.given<&ModelSpec::tied_head>().value_or(false)) refuse("tied_head");
  // Learned positions are weights, the others are not.
  const ModelDef* def = find_model(spec.architecture);
  if (def && def->positions == Positions::learned && run.given("model.max_seq")) refuse("max_seq");
  return spec;
}

ModelSpec start_from_nothing(const RunConfig& run, Complaints& complaints) {
  constexpr std::string_view kNeeded[] = {"architecture", "layers", "hidden", "heads"};
  auto is_given = [&](std::string_view field) { return run.model.fields.contains(find_model_field(field)); };
  if (std::ranges::none_of(kNeeded, is_given) && complaints.trusts("model.architecture")) {
    complaints.add({.place = fmt::format("{} [model]", run.source),
                    .got = "names no model",
                    .expected = "model.preset, model.from, or model.architecture with layers, hidden and heads"});
    for (std::string_view field : kNeeded) complaints.distrust(model_key(field));
    return {};
  }
  for (std::string_view field : kNeeded) {
    std::string name = model_key(field);
    if (is_given(field) || !complaints.trusts(name)) continue;
    complaints.add({.place = fmt::format("{} {}", run.source, name),
                    .got = "is missing",
                    .expected = expected_of(*find_key(name))});
    complaints.distrust(name);
  }
  const ModelDef* def = find_model(run.model.given<&ModelSpec::architecture>().value_or(""));
  return def ? def->defaults : ModelSpec{};
}

// Resets the sizes that a preset derives from its other sizes, so that they are derived from the new sizes.
void forget_derived(ModelSpec& spec) {
  if (spec.experts && spec.experts->ffn == spec.ffn) spec.experts->ffn = 0;
  if (spec.ffn == default_ffn(spec.architecture, spec.hidden)) spec.ffn = 0;
  if (spec.heads > 0 && spec.head_dim * spec.heads == spec.hidden) spec.head_dim = 0;
  if (spec.kv_heads == spec.heads) spec.kv_heads = 0;
}

void derive_missing(ModelSpec& spec, const RunConfig& run) {
  if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  if (spec.head_dim == 0 && spec.heads > 0) spec.head_dim = spec.hidden / spec.heads;
  if (spec.ffn == 0) spec.ffn = default_ffn(spec.architecture, spec.hidden);
  if (spec.max_seq == 0) spec.max_seq = run.batch.seq;
  if (!spec.experts) return;
  if (spec.experts->ffn == 0) spec.experts->ffn = spec.ffn;
  const ModelDef* def = find_model(spec.architecture);
  if (def && def->takes("experts.shared_ffn") && spec.experts->shared_ffn == 0) spec.experts->shared_ffn = spec.ffn;
}

// A size that is derived from an unknown size is unknown too.
void distrust_derived(const ModelSection& model, Complaints& complaints) {
  bool hidden = complaints.trusts("model.hidden"), heads = complaints.trusts("model.heads");
  if (!heads && !model.given<&ModelSpec::kv_heads>()) complaints.distrust("model.kv_heads");
  if (!(heads && hidden) && !model.given<&ModelSpec::head_dim>()) complaints.distrust("model.head_dim");
  if (!hidden && !model.given<&ModelSpec::ffn>()) complaints.distrust("model.ffn");
}

// The factor on cosines and sines follows from type and factor where it is not given.
void complete_rope_scaling(const ModelSection& model, bool had_scaling, ModelSpec& spec) {
  if (!spec.rope_scaling) return;
  RopeScaling& scaling = *spec.rope_scaling;
  bool follows = !had_scaling || model.given<&RopeScaling::type>() || model.given<&RopeScaling::factor>();
  if (follows && !model.given<&RopeScaling::attention_factor>())
    scaling.attention_factor = default_attention_factor(scaling);
  bool given = model.given<&RopeScaling::type>() || std::ranges::any_of(model.fields, [](const auto& field) {
                 return field.first->name.starts_with("rope_scaling.");
               });
  if (given && scaling.factor == 1) spec.rope_scaling.reset();
}

void apply_given_fields(const RunConfig& run, ModelSpec& spec) {
  const ModelSection& model = run.model;
  if (auto architecture = model.given<&ModelSpec::architecture>(); architecture && *architecture != spec.architecture) {
    const ModelDef* def = find_model(*architecture);  // the activation of a preset is that of its own architecture
    if (def) spec.activation = def->defaults.activation;
    spec.hf_type.clear();
  }
  const bool had_scaling = spec.rope_scaling.has_value();
  for (const auto& [field, value] : model.fields) field->set(spec, value);
  complete_rope_scaling(model, had_scaling, spec);
}

// Those of the problem's fields; of a table that should not be there, what was given of it.
std::vector<std::string> keys_of(const RunConfig& run, const SpecProblem& problem) {
  std::vector<std::string> keys;
  for (std::string_view field : problem.fields) {
    keys.push_back(model_key(field));
    if (!is_section(keys.back())) continue;
    const std::string prefix = keys.back() + ".";
    for (const Key& key : schema())
      if (key.name.starts_with(prefix) && run.given(key.name)) keys.emplace_back(key.name);
  }
  return keys;
}

}  // namespace

ModelSpec draft_model(const RunConfig& run, Complaints& complaints) {
  const ModelSection& model = run.model;
  if (model.preset && model.from)
    complaints.add(run, {"model.from", "model.preset"},
                   {.got = "model.preset is given too", .expected = "one of the two"});
  ModelSpec spec;
  if (model.from)
    spec = start_from_directory(run, complaints);
  else if (model.preset)
    spec = start_from_preset(run, complaints);
  else if (complaints.trusts("model.preset") && complaints.trusts("model.from"))
    spec = start_from_nothing(run, complaints);
  // A start that could not be read leaves nothing to reason about.
  if (!complaints.trusts("model.preset") || !complaints.trusts("model.from")) return {};

  if (!model.from) forget_derived(spec);
  apply_given_fields(run, spec);
  derive_missing(spec, run);

  if (std::string why = why_no_rope(spec.architecture); !why.empty()) {
    for (const auto& [field, value] : model.fields)
      if (field->name.starts_with("rope_"))
        complaints.add(run, {model_key(field->name)}, {.got = why, .expected = "no such key"});
    spec.rope_scaling.reset();
  }
  distrust_derived(model, complaints);
  std::vector<SpecProblem> problems = problems_of(spec);
  if (problems.empty()) problems = problems_of_saving(spec);
  for (SpecProblem& problem : problems) {
    complaints.add(run, keys_of(run, problem),
                   {.got = std::move(problem.got), .expected = std::move(problem.expected)});
  }
  return spec;
}

DropoutRates resolve_dropout(const RunConfig& run) {
  const ModelSection& model = run.model;
  DropoutRates rates;
  if (model.dropout) {
    rates = {*model.dropout, *model.dropout, *model.dropout};
  } else if (model.from) {
    const std::filesystem::path file = std::filesystem::path(*model.from) / "config.json";
    rates = hf_dropout_rates(read_file(file), file.string());
  }
  rates.hidden = model.hidden_dropout.value_or(rates.hidden);
  rates.attention = model.attention_dropout.value_or(rates.attention);
  rates.embedding = model.embedding_dropout.value_or(rates.embedding);
  return rates;
}

ModelSpec resolve_model(const RunConfig& run) {
  Complaints complaints;
  ModelSpec spec = draft_model(run, complaints);
  complaints.throw_if_any();
  return spec;
}

}  // namespace sextant
