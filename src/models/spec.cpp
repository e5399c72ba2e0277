#include "models/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/model_fields.h"
#include "models/models.h"

namespace sextant {

int64_t default_ffn(std::string_view architecture, int64_t hidden) {
  const ModelDef* def = find_model(architecture);
  return def && def->ffn_of ? def->ffn_of(hidden) : hidden * 4;
}

int64_t window_of_layer(const ModelSpec& spec, int64_t layer) {
  if (layer < spec.full_attention_first) return 0;
  if (spec.full_attention_every > 0 && (layer + 1) % spec.full_attention_every == 0) return 0;
  if (std::ranges::binary_search(spec.full_attention_layers, layer)) return 0;
  return spec.window;
}

bool layer_has_experts(const ModelSpec& spec, int64_t layer) {
  if (!spec.experts) return false;
  const std::vector<int64_t>& dense = spec.experts->dense_layers;
  return (layer + 1) % spec.experts->every == 0 && layer >= spec.experts->dense_first &&
         !std::binary_search(dense.begin(), dense.end(), layer);
}

std::vector<MlpWidth> mlp_widths(const ModelSpec& spec) {
  std::vector<MlpWidth> widths;
  bool has_mlp = false;
  for (int64_t layer = 0; layer < spec.layers && !has_mlp; ++layer) has_mlp = !layer_has_experts(spec, layer);
  if (has_mlp) widths.push_back({"ffn", spec.ffn});
  if (!spec.experts) return widths;
  widths.push_back({"experts.ffn", spec.experts->ffn, MlpOf::experts});
  if (spec.experts->shared_ffn > 0) widths.push_back({"experts.shared_ffn", spec.experts->shared_ffn});
  return widths;
}

int64_t rotary_dims(const ModelSpec& spec) {
  if (spec.latent) return spec.latent->rope_dim;
  return static_cast<int64_t>(std::floor(static_cast<double>(spec.head_dim) * spec.rotary_fraction + 1e-9));
}

Activation activation_of(const ModelSpec& spec) {
  const std::optional<Activation>& own = model_of(spec).defaults.activation;
  BUG_IF(!spec.activation && !own, "{} has no choice of activation", spec.architecture);
  return spec.activation ? *spec.activation : *own;
}

int64_t embedding_width_of(const ModelSpec& spec) {
  return spec.embedding_width > 0 ? spec.embedding_width : spec.hidden;
}

double default_attention_factor(const RopeScaling& scaling) {
  if (scaling.factor <= 1) return 1;
  if (scaling.type == RopeType::yarn) return 0.1 * std::log(scaling.factor) + 1;
  if (scaling.type == RopeType::longrope)
    return std::sqrt(1 + std::log(scaling.factor) / std::log(static_cast<double>(scaling.original_max_positions)));
  return 1;
}

double score_factor(const RopeScaling& scaling) {
  if (scaling.mscale_all_dim == 0 || scaling.factor <= 1) return 1;
  double factor = 0.1 * scaling.mscale_all_dim * std::log(scaling.factor) + 1;
  return factor * factor;
}

std::string why_no_rope(std::string_view architecture) {
  const ModelDef* def = find_model(architecture);
  if (!def || def->positions == Positions::rotary) return "";
  return fmt::format("{} has {} and no RoPE", def->name,
                     def->positions == Positions::alibi ? "ALiBi" : "learned positions");
}

namespace {

// Of every field that the spec has, by itself.
void check_ranges(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  for (const ModelField& field : model_fields()) {
    if (!field.get) continue;
    const SettingValue value = field.get(spec);
    const int64_t* count = std::get_if<int64_t>(&value);
    const double* number = std::get_if<double>(&value);
    if (!count && !number) continue;
    double is = count ? static_cast<double>(*count) : *number;
    if (field.setting.range.contains(is) || (field.zero_is_none && is == 0)) continue;
    problems.push_back({{field.name}, "got " + toml_text(value), expected_of(field.setting)});
    problems.back().fields.insert(problems.back().fields.end(), field.follows_from.begin(), field.follows_from.end());
  }
}

void check_rope_scaling(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (!spec.rope_scaling) return;
  const RopeScaling& scaling = *spec.rope_scaling;
  if (scaling.beta_fast < scaling.beta_slow)
    problems.push_back({{"rope_scaling.beta_fast", "rope_scaling.beta_slow"},
                        fmt::format("beta_fast {} is below beta_slow {}", scaling.beta_fast, scaling.beta_slow),
                        ""});
  if (scaling.high_freq_factor < scaling.low_freq_factor)
    problems.push_back({{"rope_scaling.high_freq_factor", "rope_scaling.low_freq_factor"},
                        fmt::format("high_freq_factor {} is below low_freq_factor {}", scaling.high_freq_factor,
                                    scaling.low_freq_factor),
                        ""});
  if (scaling.type != RopeType::longrope) return;
  for (auto [field, list] :
       {std::pair<std::string_view, const std::vector<double>&>{"rope_scaling.short_factor", scaling.short_factor},
        {"rope_scaling.long_factor", scaling.long_factor}}) {
    auto pairs = static_cast<size_t>(rotary_dims(spec) / 2);
    if (list.size() != pairs)
      problems.push_back({{field},
                          fmt::format("a list of {} numbers", list.size()),
                          fmt::format("{}: one for each pair that RoPE turns in a head", pairs)});
    for (double divisor : list)
      if (!above(0).contains(divisor)) problems.push_back({{field}, fmt::format("got {}", divisor), "numbers above 0"});
  }
}

void check_expert_groups(const ExpertsSpec& experts, std::vector<SpecProblem>& problems) {
  if (experts.count < 1) return;  // reported by the caller
  if (experts.groups < 1 || experts.count % experts.groups != 0) {
    problems.push_back({{"experts.groups", "experts.count"},
                        fmt::format("{} experts do not stand in {} equal groups", experts.count, experts.groups),
                        fmt::format("a number of groups that divides {}", experts.count)});
    return;
  }
  int64_t size = experts.count / experts.groups;
  if (experts.keep_groups < 1 || experts.keep_groups > experts.groups)
    problems.push_back({{"experts.keep_groups", "experts.groups"},
                        fmt::format("got {}", experts.keep_groups),
                        fmt::format("an integer from 1 to {}", experts.groups)});
  else if (experts.keep_groups * size < experts.per_token && experts.per_token <= experts.count)
    problems.push_back({{"experts.keep_groups", "experts.groups", "experts.per_token"},
                        fmt::format("{} groups of {} experts are fewer than {} experts per token", experts.keep_groups,
                                    size, experts.per_token),
                        "more groups, or fewer experts per token"});
  if (experts.group_top < 1 || experts.group_top > size)
    problems.push_back({{"experts.group_top", "experts.groups", "experts.count"},
                        fmt::format("groups of {} experts cannot be judged by their {} best", size, experts.group_top),
                        fmt::format("larger groups, or an experts.group_top from 1 to {}", size)});
}

void check_experts(const ModelSpec& spec, const ModelDef& def, std::vector<SpecProblem>& problems) {
  if (spec.experts.has_value() != def.has_experts) {
    if (spec.experts)
      problems.push_back({{"experts", "architecture"}, fmt::format("{} has no experts", def.name), "no such key"});
    else
      problems.push_back(
          {{"experts.count"}, fmt::format("{} has experts, and their number is not given", def.name), ""});
    return;
  }
  if (!spec.experts) return;
  const ExpertsSpec& experts = *spec.experts;
  if (experts.count >= 1 && experts.per_token > experts.count)
    problems.push_back({{"experts.per_token", "experts.count"},
                        fmt::format("got {}", experts.per_token),
                        fmt::format("an integer from 1 to {}", experts.count)});
  if (experts.bias_update_speed > 0 && !experts.correction_bias)
    problems.push_back({{"experts.bias_update_speed", "experts.correction_bias"},
                        "there is no correction bias to update",
                        "no experts.bias_update_speed, or experts.correction_bias = true"});
  check_expert_groups(experts, problems);
}

// The heads of latent attention; their number and width are known to be positive.
void check_latent(const ModelSpec& spec, const ModelDef& def, std::vector<SpecProblem>& problems) {
  if (!spec.latent) {
    if (def.takes("latent"))
      problems.push_back({{"latent.kv_rank"}, fmt::format("{} has latent attention", def.name), "its sizes"});
    return;
  }
  const LatentSpec& latent = *spec.latent;
  if (latent.rope_dim >= 2 && latent.rope_dim >= spec.head_dim)
    problems.push_back({{"latent.rope_dim", "head_dim"},
                        fmt::format("got {}", latent.rope_dim),
                        fmt::format("an integer from 2 to {}", std::max<int64_t>(2, spec.head_dim - 1))});
  if (latent.rope_dim % 2 != 0)
    problems.push_back(
        {{"latent.rope_dim"}, fmt::format("got {}", latent.rope_dim), "an even number, because RoPE turns pairs"});
  if (spec.kv_heads != spec.heads)
    problems.push_back({{"kv_heads", "heads"},
                        fmt::format("kv_heads {} differs from heads {}", spec.kv_heads, spec.heads),
                        fmt::format("equal numbers, because {} has latent attention", def.name)});
}

// The sizes are known to be positive here, in this function and the next.
void check_heads(const ModelSpec& spec, const ModelDef& def, std::vector<SpecProblem>& problems) {
  // Heads that are free to have any width need not divide the model's.
  if (spec.hidden % spec.heads != 0 && !def.free_heads)
    problems.push_back({{"heads", "hidden"},
                        fmt::format("heads {} does not divide hidden {}", spec.heads, spec.hidden),
                        fmt::format("a divisor of {}", spec.hidden)});
  if (spec.heads % spec.kv_heads != 0)
    problems.push_back({{"kv_heads", "heads"},
                        fmt::format("kv_heads {} does not divide heads {}", spec.kv_heads, spec.heads),
                        fmt::format("a divisor of {}", spec.heads)});
  bool rounded = spec.hidden % spec.heads != 0 && !def.free_heads;  // reported above
  if (def.positions == Positions::rotary && spec.rotary_fraction == 1 && spec.head_dim % 2 != 0 && !rounded &&
      !spec.latent)
    problems.push_back({{"head_dim", "heads", "hidden"},
                        fmt::format("head_dim {} is odd", spec.head_dim),
                        "an even head_dim, because RoPE turns pairs"});
  if (def.free_heads) return;
  if (spec.kv_heads != spec.heads)
    problems.push_back({{"kv_heads", "heads"},
                        fmt::format("kv_heads {} differs from heads {}", spec.kv_heads, spec.heads),
                        fmt::format("equal numbers, because {} has no grouped-query attention", def.name)});
  if (spec.hidden % spec.heads == 0 && spec.head_dim != spec.hidden / spec.heads)
    problems.push_back({{"head_dim", "heads", "hidden"},
                        fmt::format("head_dim {} is not hidden / heads", spec.head_dim),
                        fmt::format("{}, because {} supports only that", spec.hidden / spec.heads, def.name)});
}

void check_sizes_that_are_fixed(const ModelSpec& spec, const ModelDef& def, std::vector<SpecProblem>& problems) {
  if (spec.embedding_width > 0 && spec.embedding_width == spec.hidden)
    problems.push_back({{"embedding_width", "hidden"},
                        fmt::format("embedding_width {} is hidden", spec.embedding_width),
                        "another width, or 0 for no projections"});
  if (!def.free_ffn && spec.ffn != 4 * spec.hidden)
    problems.push_back({{"ffn", "hidden"},
                        fmt::format("ffn {} is not 4 hidden", spec.ffn),
                        fmt::format("{}, because {} supports only 4·hidden", 4 * spec.hidden, def.name)});
  if (!def.free_eps && spec.norm_eps != 1e-5)
    problems.push_back({{"norm_eps"},
                        fmt::format("norm_eps {} is not 1e-05", spec.norm_eps),
                        fmt::format("1e-05, because {} supports only that", def.name)});
}

// ", or one of the architectures with it: neox, phi3"; empty where there is none.
std::string architectures_with(std::string_view option) {
  std::vector<std::string_view> names;
  for (const ModelDef* def : all_models())
    if (def->takes(option)) names.push_back(def->name);
  if (names.empty()) return "";
  return fmt::format(", or an architecture with it: {}", fmt::join(names, ", "));
}

// Options of the spec that the architecture does not compute.
void check_options(const ModelSpec& spec, const ModelDef& def, std::vector<SpecProblem>& problems) {
  auto refuse = [&](std::string_view name, std::string_view option, const auto& row) {
    if (row.lacking.empty() || !row.is_used(spec) || def.takes(option)) return;
    std::string why = row.of_rope ? why_no_rope(def.name) : "";
    problems.push_back({{name},
                        why.empty() ? fmt::format("{} {}", def.name, row.lacking) : why,
                        fmt::format("no {}{}", name, architectures_with(option))});
  };
  for (const ModelPart& part : model_parts()) refuse(part.name, part.name, part);
  for (const ModelField& field : model_fields()) refuse(field.name, field.option_name(), field);
  int64_t turned = rotary_dims(spec);
  if (def.takes("rotary_fraction") && spec.rotary_fraction != 1 && (turned < 2 || turned % 2 != 0))
    problems.push_back({{"rotary_fraction", "head_dim"},
                        fmt::format("{} of head_dim {} is {} elements", spec.rotary_fraction, spec.head_dim, turned),
                        "an even number of them, because RoPE turns pairs"});
  if (def.check) def.check(spec, problems);
}

}  // namespace

std::vector<SpecProblem> problems_of(const ModelSpec& spec) {
  std::vector<SpecProblem> problems;
  const ModelDef* def = find_model(spec.architecture);
  if (!def) {
    std::vector<std::string_view> names;
    for (const ModelDef* known : all_models()) names.push_back(known->name);
    problems.push_back({{"architecture"},
                        fmt::format("got \"{}\"", spec.architecture),
                        fmt::format("one of {}", fmt::join(names, ", "))});
  }
  check_ranges(spec, problems);
  check_rope_scaling(spec, problems);
  bool countable = spec.hidden > 0 && spec.heads > 0 && spec.kv_heads > 0 && spec.head_dim > 0;
  if (!def || !countable) return problems;
  check_heads(spec, *def, problems);
  check_latent(spec, *def, problems);
  check_sizes_that_are_fixed(spec, *def, problems);
  check_options(spec, *def, problems);
  check_experts(spec, *def, problems);
  return problems;
}

}  // namespace sextant
