#include "config/resolve.h"

#include <fmt/format.h>

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

// With weights at hand these are facts, not choices.
constexpr std::string_view kFixedByWeights[] = {"architecture",
                                                "layers",
                                                "hidden",
                                                "heads",
                                                "kv_heads",
                                                "head_dim",
                                                "ffn",
                                                "vocab",
                                                "init_std",
                                                "rotary_fraction",
                                                "activation",
                                                "norm_placement",
                                                "embedding_width",
                                                "qkv_bias",
                                                "out_bias",
                                                "mlp_bias",
                                                "qk_norm",
                                                "window",
                                                "full_attention_first",
                                                "full_attention_every",
                                                "attention_chunk",
                                                "temperature_positions",
                                                "temperature_strength",
                                                "inverse_layer_scaling",
                                                "parallel_residual",
                                                "no_rope_every",
                                                "embedding_multiplier",
                                                "attention_multiplier",
                                                "residual_multiplier",
                                                "logits_scaling",
                                                "latent.q_rank",
                                                "latent.kv_rank",
                                                "latent.rope_dim",
                                                "latent.value_dim",
                                                "experts.count",
                                                "experts.per_token",
                                                "experts.ffn",
                                                "experts.normalise",
                                                "experts.every",
                                                "experts.dense_first",
                                                "experts.shared_ffn",
                                                "experts.score",
                                                "experts.groups",
                                                "experts.keep_groups",
                                                "experts.group_top",
                                                "experts.scale",
                                                "experts.correction_bias"};
constexpr std::string_view kRopeKeys[] = {"rope_theta",
                                          "rope_scaling.type",
                                          "rope_scaling.factor",
                                          "rope_scaling.low_freq_factor",
                                          "rope_scaling.high_freq_factor",
                                          "rope_scaling.beta_fast",
                                          "rope_scaling.beta_slow",
                                          "rope_scaling.attention_factor",
                                          "rope_scaling.mscale_all_dim",
                                          "rope_scaling.original_max_positions"};

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
  const ModelDef* target = find_model(run.model.architecture.value_or(""));
  bool upcycles = target && target->has_experts && !spec.experts;
  for (std::string_view field : kFixedByWeights) {
    bool free = upcycles && (field == "architecture" || (field.starts_with("experts.") && field != "experts.ffn"));
    if (run.given(model_key(field)) && !free) refuse(field);
  }
  if (upcycles) spec = upcycled_spec(spec, *target);
  // Modules of multi-token prediction are left alone unless they are asked for.
  int64_t depths = run.model.mtp.depths.value_or(0);
  if (depths > 0 && depths != spec.mtp_depths)
    complaints.add(run, {"model.mtp.depths"},
                   {.got = fmt::format("got {}, but model.from has {}", depths, spec.mtp_depths),
                    .expected = spec.mtp_depths > 0 ? fmt::format("{} or 0", spec.mtp_depths) : "0"});
  spec.mtp_depths = 0;
  // The head of a tied model is in the file or is not; one that is not tied is.
  if (!spec.tied_head && run.model.tied_head.value_or(false)) refuse("tied_head");
  // Learned positions are weights, the others are not.
  const ModelDef* def = find_model(spec.architecture);
  if (def && def->positions == Positions::learned && run.given("model.max_seq")) refuse("max_seq");
  return spec;
}

ModelSpec start_from_nothing(const RunConfig& run, Complaints& complaints) {
  const ModelSection& model = run.model;
  bool says_anything = model.architecture || model.layers || model.hidden || model.heads;
  if (!says_anything && complaints.trusts("model.architecture")) {
    complaints.add({.place = fmt::format("{} [model]", run.source),
                    .got = "names no model",
                    .expected = "model.preset, model.from, or model.architecture with layers, hidden and heads"});
    for (std::string_view field : {"architecture", "layers", "hidden", "heads"}) complaints.distrust(model_key(field));
    return {};
  }
  auto need = [&](std::string_view field, bool present) {
    std::string name = model_key(field);
    if (present || !complaints.trusts(name)) return;
    complaints.add({.place = fmt::format("{} {}", run.source, name),
                    .got = "is missing",
                    .expected = expected_of(*find_key(name))});
    complaints.distrust(name);
  };
  need("architecture", model.architecture.has_value());
  need("layers", model.layers.has_value());
  need("hidden", model.hidden.has_value());
  need("heads", model.heads.has_value());
  const ModelDef* def = find_model(model.architecture.value_or(""));
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
  if (!heads && !model.kv_heads) complaints.distrust("model.kv_heads");
  if (!(heads && hidden) && !model.head_dim) complaints.distrust("model.head_dim");
  if (!hidden && !model.ffn) complaints.distrust("model.ffn");
}

template <class T, class U>
void override_field(const std::optional<T>& given, U& field) {
  if (given) field = *given;
}

void apply_overrides(const RunConfig& run, ModelSpec& spec) {
  const ModelSection& model = run.model;
  if (model.architecture && *model.architecture != spec.architecture) {
    const ModelDef* def =
        find_model(*model.architecture);  // the activation of a preset is that of its own architecture
    if (def) spec.activation = def->defaults.activation;
    spec.hf_type.clear();
  }
  override_field(model.architecture, spec.architecture);
  override_field(model.layers, spec.layers);
  override_field(model.hidden, spec.hidden);
  override_field(model.heads, spec.heads);
  override_field(model.kv_heads, spec.kv_heads);
  override_field(model.head_dim, spec.head_dim);
  override_field(model.ffn, spec.ffn);
  override_field(model.vocab, spec.vocab);
  override_field(model.max_seq, spec.max_seq);
  override_field(model.norm_eps, spec.norm_eps);
  override_field(model.rope_theta, spec.rope_theta);
  override_field(model.rotary_fraction, spec.rotary_fraction);
  // The schema knows the words of these two.
  if (model.activation) spec.activation = activation_from_name(*model.activation);
  if (model.norm_placement) spec.norm_placement = *norm_placement_from_name(*model.norm_placement);
  override_field(model.embedding_width, spec.embedding_width);
  override_field(model.qkv_bias, spec.qkv_bias);
  override_field(model.out_bias, spec.out_bias);
  override_field(model.mlp_bias, spec.mlp_bias);
  override_field(model.qk_norm, spec.qk_norm);
  override_field(model.window, spec.window);
  override_field(model.full_attention_first, spec.full_attention_first);
  override_field(model.full_attention_every, spec.full_attention_every);
  override_field(model.attention_chunk, spec.attention_chunk);
  override_field(model.temperature_positions, spec.temperature_positions);
  override_field(model.temperature_strength, spec.temperature_strength);
  override_field(model.inverse_layer_scaling, spec.inverse_layer_scaling);
  override_field(model.parallel_residual, spec.parallel_residual);
  override_field(model.no_rope_every, spec.no_rope_every);
  override_field(model.embedding_multiplier, spec.embedding_multiplier);
  override_field(model.attention_multiplier, spec.attention_multiplier);
  override_field(model.residual_multiplier, spec.residual_multiplier);
  override_field(model.logits_scaling, spec.logits_scaling);
  override_field(model.mtp.depths, spec.mtp_depths);
  override_field(model.tied_head, spec.tied_head);
  override_field(model.init_std, spec.init_std);

  if (model.latent != LatentSection{}) {
    LatentSpec latent = spec.latent.value_or(LatentSpec{});
    override_field(model.latent.q_rank, latent.q_rank);
    override_field(model.latent.kv_rank, latent.kv_rank);
    override_field(model.latent.rope_dim, latent.rope_dim);
    override_field(model.latent.value_dim, latent.value_dim);
    spec.latent = latent;
  }
  if (model.experts != ExpertsSection{}) {
    ExpertsSpec experts = spec.experts.value_or(ExpertsSpec{});
    override_field(model.experts.count, experts.count);
    override_field(model.experts.per_token, experts.per_token);
    override_field(model.experts.ffn, experts.ffn);
    override_field(model.experts.normalise, experts.normalise);
    override_field(model.experts.balance_loss, experts.balance_loss);
    override_field(model.experts.every, experts.every);
    override_field(model.experts.dense_first, experts.dense_first);
    override_field(model.experts.shared_ffn, experts.shared_ffn);
    if (model.experts.score)
      experts.score = *expert_score_from_name(*model.experts.score);  // the schema knows the words
    override_field(model.experts.groups, experts.groups);
    override_field(model.experts.keep_groups, experts.keep_groups);
    override_field(model.experts.group_top, experts.group_top);
    override_field(model.experts.scale, experts.scale);
    override_field(model.experts.correction_bias, experts.correction_bias);
    override_field(model.experts.bias_update_speed, experts.bias_update_speed);
    override_field(model.experts.forced_balance, experts.forced_balance);
    override_field(model.experts.drop_above, experts.drop_above);
    if (model.experts.drop_policy) experts.drop_policy = *drop_policy_from_name(*model.experts.drop_policy);
    if (model.experts.balance_scope) experts.balance_scope = *balance_scope_from_name(*model.experts.balance_scope);
    override_field(model.experts.z_loss, experts.z_loss);
    spec.experts = experts;
  }
  if (model.rope_scaling == RopeScalingSection{}) return;
  RopeScaling scaling = spec.rope_scaling.value_or(RopeScaling{});
  if (model.rope_scaling.type) scaling.type = *rope_type_of(*model.rope_scaling.type);  // the schema knows the words
  override_field(model.rope_scaling.factor, scaling.factor);
  override_field(model.rope_scaling.low_freq_factor, scaling.low_freq_factor);
  override_field(model.rope_scaling.high_freq_factor, scaling.high_freq_factor);
  override_field(model.rope_scaling.beta_fast, scaling.beta_fast);
  override_field(model.rope_scaling.beta_slow, scaling.beta_slow);
  override_field(model.rope_scaling.original_max_positions, scaling.original_max_positions);
  if (!spec.rope_scaling || model.rope_scaling.type || model.rope_scaling.factor)
    scaling.attention_factor = default_attention_factor(scaling);
  override_field(model.rope_scaling.attention_factor, scaling.attention_factor);
  override_field(model.rope_scaling.mscale_all_dim, scaling.mscale_all_dim);
  spec.rope_scaling = scaling;
  if (scaling.factor == 1) spec.rope_scaling.reset();
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
  apply_overrides(run, spec);
  derive_missing(spec, run);

  if (std::string why = why_no_rope(spec.architecture); !why.empty()) {
    for (std::string_view field : kRopeKeys)
      if (run.given(model_key(field))) complaints.add(run, {model_key(field)}, {.got = why, .expected = "no such key"});
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
  override_field(model.hidden_dropout, rates.hidden);
  override_field(model.attention_dropout, rates.attention);
  override_field(model.embedding_dropout, rates.embedding);
  return rates;
}

ModelSpec resolve_model(const RunConfig& run) {
  Complaints complaints;
  ModelSpec spec = draft_model(run, complaints);
  complaints.throw_if_any();
  return spec;
}

}  // namespace sextant
