#include "models/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/models.h"
#include "models/word_list.h"

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

std::string_view name_of(RopeType type) {
  return word_at(kRopeTypes, static_cast<size_t>(type));
}

std::optional<RopeType> rope_type_of(std::string_view name) {
  return value_of_word<RopeType>(kRopeTypes, name);
}

std::optional<NormPlacement> norm_placement_from_name(std::string_view name) {
  return value_of_word<NormPlacement>(kNormPlacements, name);
}

std::optional<ExpertScore> expert_score_from_name(std::string_view name) {
  return value_of_word<ExpertScore>(kExpertScores, name);
}

std::optional<DropPolicy> drop_policy_from_name(std::string_view name) {
  return value_of_word<DropPolicy>(kDropPolicies, name);
}

std::optional<BalanceScope> balance_scope_from_name(std::string_view name) {
  return value_of_word<BalanceScope>(kBalanceScopes, name);
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

void check_sizes(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  struct Size {
    std::string_view field;
    int64_t value, low, high;
  };
  for (const Size& size :
       {Size{"layers", spec.layers, 1, kMaxLayers}, Size{"hidden", spec.hidden, 1, kMaxHidden},
        Size{"heads", spec.heads, 1, kMaxHeads}, Size{"kv_heads", spec.kv_heads, 1, kMaxHeads},
        Size{"head_dim", spec.head_dim, 1, kMaxHidden}, Size{"ffn", spec.ffn, 1, kMaxFfn},
        Size{"vocab", spec.vocab, 0, kMaxVocab}, Size{"max_seq", spec.max_seq, 1, kMaxSeq},
        Size{"embedding_width", spec.embedding_width, 0, kMaxHidden}, Size{"window", spec.window, 0, kMaxSeq},
        Size{"full_attention_first", spec.full_attention_first, 0, kMaxLayers},
        Size{"full_attention_every", spec.full_attention_every, 0, kMaxLayers},
        Size{"no_rope_every", spec.no_rope_every, 0, kMaxLayers},
        Size{"attention_chunk", spec.attention_chunk, 0, kMaxSeq},
        Size{"temperature_positions", spec.temperature_positions, 0, kMaxSeq},
        Size{"mtp.depths", spec.mtp_depths, 0, kMaxMtpDepths}}) {
    if (size.value >= size.low && size.value <= size.high) continue;
    problems.push_back({{size.field},
                        fmt::format("got {}", size.value),
                        fmt::format("an integer from {} to {}", size.low, size.high)});
    // It follows from these where it was not given.
    if (size.field == "head_dim") problems.back().fields.insert(problems.back().fields.end(), {"hidden", "heads"});
  }
}

void check_numbers(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  auto positive = [&](std::string_view field, double value) {
    if (!(std::isfinite(value) && value > 0))
      problems.push_back({{field}, fmt::format("got {}", value), "a number above 0"});
  };
  positive("norm_eps", spec.norm_eps);
  positive("rope_theta", spec.rope_theta);
  positive("embedding_multiplier", spec.embedding_multiplier);
  positive("residual_multiplier", spec.residual_multiplier);
  positive("logits_scaling", spec.logits_scaling);
  positive("temperature_strength", spec.temperature_strength);
  if (!(std::isfinite(spec.attention_multiplier) && spec.attention_multiplier >= 0))
    problems.push_back(
        {{"attention_multiplier"}, fmt::format("got {}", spec.attention_multiplier), "a number of at least 0"});
  if (!(spec.rotary_fraction > 0 && spec.rotary_fraction <= 1))
    problems.push_back(
        {{"rotary_fraction"}, fmt::format("got {}", spec.rotary_fraction), "a number above 0, at most 1"});
  if (!(std::isfinite(spec.init_std) && spec.init_std >= 0))
    problems.push_back({{"init_std"}, fmt::format("got {}", spec.init_std), "a number of at least 0"});
}

void check_rope_scaling(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (!spec.rope_scaling) return;
  const RopeScaling& scaling = *spec.rope_scaling;
  auto positive = [&](std::string_view field, double value) {
    if (!(std::isfinite(value) && value > 0))
      problems.push_back({{field}, fmt::format("got {}", value), "a number above 0"});
  };
  positive("rope_scaling.factor", scaling.factor);
  positive("rope_scaling.attention_factor", scaling.attention_factor);
  positive("rope_scaling.beta_slow", scaling.beta_slow);
  if (!(std::isfinite(scaling.mscale_all_dim) && scaling.mscale_all_dim >= 0))
    problems.push_back(
        {{"rope_scaling.mscale_all_dim"}, fmt::format("got {}", scaling.mscale_all_dim), "a number of at least 0"});
  if (!(std::isfinite(scaling.beta_fast) && scaling.beta_fast >= scaling.beta_slow))
    problems.push_back({{"rope_scaling.beta_fast", "rope_scaling.beta_slow"},
                        fmt::format("beta_fast {} is below beta_slow {}", scaling.beta_fast, scaling.beta_slow),
                        ""});
  positive("rope_scaling.low_freq_factor", scaling.low_freq_factor);
  if (!(std::isfinite(scaling.high_freq_factor) && scaling.high_freq_factor >= scaling.low_freq_factor))
    problems.push_back({{"rope_scaling.high_freq_factor", "rope_scaling.low_freq_factor"},
                        fmt::format("high_freq_factor {} is below low_freq_factor {}", scaling.high_freq_factor,
                                    scaling.low_freq_factor),
                        ""});
  if (scaling.original_max_positions < 1 || scaling.original_max_positions > kMaxSeq)
    problems.push_back({{"rope_scaling.original_max_positions"},
                        fmt::format("got {}", scaling.original_max_positions),
                        fmt::format("an integer from 1 to {}", kMaxSeq)});
  if (scaling.type != RopeType::longrope) return;
  for (auto [field, list] :
       {std::pair<std::string_view, const std::vector<double>&>{"rope_scaling.short_factor", scaling.short_factor},
        {"rope_scaling.long_factor", scaling.long_factor}}) {
    auto pairs = static_cast<size_t>(rotary_dims(spec) / 2);
    if (list.size() != pairs)
      problems.push_back({{field},
                          fmt::format("a list of {} numbers", list.size()),
                          fmt::format("{}: one for each pair that RoPE turns in a head", pairs)});
    for (double divisor : list) positive(field, divisor);
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
  struct Size {
    std::string_view field;
    int64_t value, low, high;
  };
  for (const Size& size :
       {Size{"experts.count", experts.count, 1, kMaxExperts},
        Size{"experts.per_token", experts.per_token, 1, std::max<int64_t>(1, experts.count)},
        Size{"experts.ffn", experts.ffn, 1, kMaxFfn}, Size{"experts.every", experts.every, 1, kMaxLayers},
        Size{"experts.dense_first", experts.dense_first, 0, kMaxLayers},
        Size{"experts.shared_ffn", experts.shared_ffn, 0, kMaxFfn}}) {
    if (size.value >= size.low && size.value <= size.high) continue;
    problems.push_back({{size.field},
                        fmt::format("got {}", size.value),
                        fmt::format("an integer from {} to {}", size.low, size.high)});
    if (size.field == "experts.per_token") problems.back().fields.emplace_back("experts.count");
  }
  for (auto [field, value] : {std::pair<std::string_view, double>{"experts.balance_loss", experts.balance_loss},
                              {"experts.z_loss", experts.z_loss},
                              {"experts.bias_update_speed", experts.bias_update_speed}})
    if (!(std::isfinite(value) && value >= 0))
      problems.push_back({{field}, fmt::format("got {}", value), "a number of at least 0"});
  if (!(std::isfinite(experts.scale) && experts.scale > 0))
    problems.push_back({{"experts.scale"}, fmt::format("got {}", experts.scale), "a number above 0"});
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
  struct Size {
    std::string_view field;
    int64_t value, low, high;
  };
  for (const Size& size :
       {Size{"latent.q_rank", latent.q_rank, 0, kMaxHidden}, Size{"latent.kv_rank", latent.kv_rank, 1, kMaxHidden},
        Size{"latent.rope_dim", latent.rope_dim, 2, std::max<int64_t>(2, spec.head_dim - 1)},
        Size{"latent.value_dim", latent.value_dim, 1, kMaxHidden}})
    if (size.value < size.low || size.value > size.high)
      problems.push_back({{size.field},
                          fmt::format("got {}", size.value),
                          fmt::format("an integer from {} to {}", size.low, size.high)});
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

// A field of ModelSpec that only some architectures compute.
struct OptionalField {
  std::string_view field;
  std::string_view lacking;  // "gpt2 has no norm of heads"
  bool (*given)(const ModelSpec& spec);
  bool of_rope = false;
  std::string_view of_option = {};  // of ModelDef::options; empty = the field itself

  std::string_view option() const { return of_option.empty() ? field : of_option; }
};

constexpr OptionalField kOptionalFields[] = {
    {"rope_scaling", "does not scale its RoPE", [](const ModelSpec& s) { return s.rope_scaling.has_value(); }, true},
    {"rope_scaling.mscale_all_dim", "does not scale attention's scores by its RoPE",
     [](const ModelSpec& s) { return s.rope_scaling && s.rope_scaling->mscale_all_dim > 0; }, true},
    {"latent", "has no latent attention", [](const ModelSpec& s) { return s.latent.has_value(); }},
    {"rotary_fraction", "turns whole heads", [](const ModelSpec& s) { return s.rotary_fraction != 1; }, true},
    {"activation", "has no choice of activation", [](const ModelSpec& s) { return s.activation.has_value(); }},
    {"norm_placement", "has no choice of where norms stand",
     [](const ModelSpec& s) { return s.norm_placement != NormPlacement::pre; }},
    {"embedding_width", "has embeddings as wide as hidden", [](const ModelSpec& s) { return s.embedding_width > 0; }},
    {"qkv_bias", "has no option of biases", [](const ModelSpec& s) { return s.qkv_bias; }},
    {"out_bias", "has no option of a bias of attention's output", [](const ModelSpec& s) { return s.out_bias; }},
    {"mlp_bias", "has no option of biases of the MLP", [](const ModelSpec& s) { return s.mlp_bias; }},
    {"qk_norm", "has no norm of heads", [](const ModelSpec& s) { return s.qk_norm; }},
    {"window", "has no window", [](const ModelSpec& s) { return s.window > 0; }},
    {"full_attention_first", "has no window", [](const ModelSpec& s) { return s.full_attention_first > 0; }},
    {"full_attention_every", "has no window",
     [](const ModelSpec& s) { return s.full_attention_every > 0 || !s.full_attention_layers.empty(); }},
    {"attention_chunk", "has no chunks of attention", [](const ModelSpec& s) { return s.attention_chunk > 0; }},
    {"temperature_positions", "has no temperature of attention",
     [](const ModelSpec& s) { return s.temperature_positions > 0; }},
    {"temperature_strength", "has no temperature of attention",
     [](const ModelSpec& s) { return s.temperature_strength != ModelSpec{}.temperature_strength; }, false,
     "temperature_positions"},
    {"inverse_layer_scaling", "does not scale by layers", [](const ModelSpec& s) { return s.inverse_layer_scaling; }},
    {"parallel_residual", "has no choice of parallel residuals",
     [](const ModelSpec& s) { return s.parallel_residual; }},
    {"experts.ffn", "has experts as wide as its ffn",
     [](const ModelSpec& s) { return s.experts && s.experts->ffn != s.ffn; }},
    {"experts.normalise", "makes the weights of a token's experts sum to 1",
     [](const ModelSpec& s) { return s.experts && !s.experts->normalise; }},
    {"experts.every", "has experts in every layer",
     [](const ModelSpec& s) { return s.experts && (s.experts->every != 1 || !s.experts->dense_layers.empty()); }},
    {"experts.dense_first", "has experts in its first layers too",
     [](const ModelSpec& s) { return s.experts && s.experts->dense_first > 0; }},
    {"experts.shared_ffn", "has no shared expert",
     [](const ModelSpec& s) { return s.experts && s.experts->shared_ffn > 0; }},
    {"experts.score", "scores experts by softmax",
     [](const ModelSpec& s) { return s.experts && s.experts->score != ExpertScore::softmax; }},
    {"experts.groups", "has no groups of experts",
     [](const ModelSpec& s) { return s.experts && s.experts->groups != 1; }},
    {"experts.keep_groups", "has no groups of experts",
     [](const ModelSpec& s) { return s.experts && s.experts->keep_groups != 1; }, false, "experts.groups"},
    {"experts.group_top", "has no groups of experts",
     [](const ModelSpec& s) { return s.experts && s.experts->group_top != 1; }, false, "experts.groups"},
    {"experts.scale", "does not scale the weights of experts",
     [](const ModelSpec& s) { return s.experts && s.experts->scale != 1; }},
    {"experts.correction_bias", "has no bias by which experts are chosen",
     [](const ModelSpec& s) { return s.experts && s.experts->correction_bias; }},
    {"experts.swiglu_limit", "has no limit of SwiGLU",
     [](const ModelSpec& s) { return s.experts && s.experts->swiglu_limit != 0; }},
    {"mtp.depths", "has no multi-token prediction", [](const ModelSpec& s) { return s.mtp_depths > 0; }},
    {"no_rope_every", "has RoPE in all layers", [](const ModelSpec& s) { return s.no_rope_every > 0; }, true},
    {"embedding_multiplier", "has no multiplier of embeddings",
     [](const ModelSpec& s) { return s.embedding_multiplier != 1; }},
    {"attention_multiplier", "has no multiplier of attention",
     [](const ModelSpec& s) { return s.attention_multiplier != 0; }},
    {"residual_multiplier", "has no multiplier of residuals",
     [](const ModelSpec& s) { return s.residual_multiplier != 1; }},
    {"logits_scaling", "has no scaling of logits", [](const ModelSpec& s) { return s.logits_scaling != 1; }},
};

// ", or one of the architectures with it: neox, phi3"; empty where there is none.
std::string architectures_with(std::string_view option) {
  std::vector<std::string_view> names;
  for (const ModelDef* def : all_models())
    if (def->takes(option)) names.push_back(def->name);
  if (names.empty()) return "";
  return fmt::format(", or an architecture with it: {}", fmt::join(names, ", "));
}

void check_options(const ModelSpec& spec, const ModelDef& def, std::vector<SpecProblem>& problems) {
  for (const OptionalField& option : kOptionalFields) {
    if (!option.given(spec) || def.takes(option.option())) continue;
    std::string why = option.of_rope ? why_no_rope(def.name) : "";
    problems.push_back({{option.field},
                        why.empty() ? fmt::format("{} {}", def.name, option.lacking) : why,
                        fmt::format("no {}{}", option.field, architectures_with(option.option()))});
  }
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
  check_sizes(spec, problems);
  check_numbers(spec, problems);
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
