#include "models/spec_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "models/models.h"
#include "models/word_list.h"

namespace sextant {

namespace {

// A number as the shortest text that gives it back.
template <class T>
std::string text_of(const T& value) {
  return fmt::format("{}", value);
}

std::string text_of(const std::optional<int64_t>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

template <class Enum>
std::string word_of(std::string_view words, Enum value) {
  return std::string(word_at(words, static_cast<size_t>(value)));
}

// "0, 2, 3": the layers for which that holds.
std::string layers_with(const ModelSpec& spec, const std::function<bool(int64_t layer)>& holds) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < std::min(spec.layers, kMaxLayers); ++layer)
    if (holds(layer)) layers.push_back(layer);
  if (static_cast<int64_t>(layers.size()) == spec.layers) return "all layers";
  return layers.empty() ? "no layer" : fmt::format("layers {}", fmt::join(layers, ", "));
}

class Fields {
 public:
  void add(std::string_view name, FieldRole role, std::string value) {
    values_.push_back({name, role, std::move(value)});
  }
  // One that counts only beside others.
  void add_if(bool counts, std::string_view name, FieldRole role, std::string value) {
    add(name, role, counts ? std::move(value) : "unused");
  }
  std::vector<FieldValue> take() { return std::move(values_); }

 private:
  std::vector<FieldValue> values_;
};

void add_scaling(Fields& out, const std::optional<RopeScaling>& scaling) {
  using enum FieldRole;
  static const RopeScaling kNone;
  const auto& [type, factor, original_max_positions, low_freq_factor, high_freq_factor, beta_fast, beta_slow, truncate,
               attention_factor, mscale_all_dim, short_factor, long_factor] = scaling ? *scaling : kNone;
  bool llama3 = scaling && type == RopeType::llama3, yarn = scaling && type == RopeType::yarn;
  bool longrope = scaling && type == RopeType::longrope;
  bool by_positions = llama3 || yarn || longrope;
  out.add("rope_scaling.type", function, scaling ? std::string(name_of(type)) : "none");
  out.add_if(scaling.has_value(), "rope_scaling.factor", function, text_of(factor));
  out.add_if(by_positions, "rope_scaling.original_max_positions", function, text_of(original_max_positions));
  out.add_if(llama3, "rope_scaling.low_freq_factor", function, text_of(low_freq_factor));
  out.add_if(llama3, "rope_scaling.high_freq_factor", function, text_of(high_freq_factor));
  out.add_if(yarn, "rope_scaling.beta_fast", function, text_of(beta_fast));
  out.add_if(yarn, "rope_scaling.beta_slow", function, text_of(beta_slow));
  out.add_if(yarn, "rope_scaling.truncate", function, text_of(truncate));
  out.add_if(yarn || longrope, "rope_scaling.attention_factor", function, text_of(attention_factor));
  out.add_if(scaling && mscale_all_dim != 0, "rope_scaling.mscale_all_dim", function, text_of(mscale_all_dim));
  out.add_if(longrope, "rope_scaling.short_factor", function, fmt::format("{}", fmt::join(short_factor, ", ")));
  out.add_if(longrope, "rope_scaling.long_factor", function, fmt::format("{}", fmt::join(long_factor, ", ")));
}

void add_latent(Fields& out, const std::optional<LatentSpec>& latent) {
  using enum FieldRole;
  static const LatentSpec kNone;
  const auto& [q_rank, kv_rank, rope_dim, value_dim] = latent ? *latent : kNone;
  bool has = latent.has_value();
  out.add_if(has, "latent.q_rank", function, text_of(q_rank));
  out.add_if(has, "latent.kv_rank", function, text_of(kv_rank));
  out.add_if(has, "latent.rope_dim", function, text_of(rope_dim));
  out.add_if(has, "latent.value_dim", function, text_of(value_dim));
}

void add_experts(Fields& out, const ModelSpec& spec) {
  using enum FieldRole;
  static const ExpertsSpec kNone;
  const auto& [count, per_token, ffn, normalise, balance_loss, every, dense_layers, dense_first, shared_ffn, score,
               groups, keep_groups, group_top, scale, correction_bias, bias_update_speed, forced_balance, drop_above,
               drop_policy, balance_scope, z_loss, swiglu_limit, swiglu_alpha] = spec.experts ? *spec.experts : kNone;
  bool has = spec.experts.has_value();
  bool grouped = has && keep_groups < groups;
  out.add("experts.count", function, has ? text_of(count) : "0");
  out.add_if(has, "experts.per_token", function, text_of(per_token));
  out.add_if(has, "experts.ffn", function, text_of(ffn));
  out.add_if(has, "experts.normalise", function, text_of(normalise));
  // every, dense_first and dense_layers together.
  out.add_if(has, "experts.every", function,
             layers_with(spec, [&](int64_t layer) { return layer_has_experts(spec, layer); }));
  out.add_if(has, "experts.shared_ffn", function, text_of(shared_ffn));
  out.add_if(has, "experts.score", function, word_of(kExpertScores, score));
  out.add_if(grouped, "experts.groups", function, text_of(groups));
  out.add_if(grouped, "experts.keep_groups", function, text_of(keep_groups));
  out.add_if(grouped, "experts.group_top", function, text_of(group_top));
  out.add_if(has, "experts.scale", function, text_of(scale));
  out.add_if(has, "experts.correction_bias", function, text_of(correction_bias));
  out.add_if(has, "experts.swiglu_limit", function, text_of(swiglu_limit));
  out.add_if(has && swiglu_limit != 0, "experts.swiglu_alpha", function, text_of(swiglu_alpha));
  out.add_if(has, "experts.balance_loss", training, text_of(balance_loss));
  out.add_if(has, "experts.balance_scope", training, word_of(kBalanceScopes, balance_scope));
  out.add_if(has, "experts.z_loss", training, text_of(z_loss));
  out.add_if(has, "experts.bias_update_speed", training, text_of(bias_update_speed));
  out.add_if(has, "experts.forced_balance", training, text_of(forced_balance));
  out.add_if(has, "experts.drop_above", training, text_of(drop_above));
  out.add_if(has && drop_above > 0, "experts.drop_policy", training, word_of(kDropPolicies, drop_policy));
}

std::string activation_name(const ModelSpec& spec) {
  bool chosen = model_of(spec).takes("activation");
  return chosen ? std::string(name_of(activation_of(spec))) : "unused";
}

}  // namespace

std::vector<FieldValue> field_values(const ModelSpec& spec) {
  using enum FieldRole;
  const auto& [architecture, hf_type, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_seq, norm_eps,
               rope_theta, rope_scaling, rotary_fraction, activation, norm_placement, embedding_width, qkv_bias,
               out_bias, mlp_bias, qk_norm, window, full_attention_first, full_attention_every, full_attention_layers,
               attention_chunk, temperature_positions, temperature_strength, inverse_layer_scaling, parallel_residual,
               no_rope_every, embedding_multiplier, attention_multiplier, residual_multiplier, logits_scaling, latent,
               experts, mtp_depths, tied_head, init_std, bos_token, eos_tokens, padding_token] = spec;
  const bool rotary = model_of(spec).positions == Positions::rotary;
  Fields out;
  out.add("architecture", function, architecture);
  out.add("layers", function, text_of(layers));
  out.add("hidden", function, text_of(hidden));
  out.add("heads", function, text_of(heads));
  out.add("kv_heads", function, text_of(kv_heads));
  out.add("head_dim", function, text_of(head_dim));
  out.add("ffn", function, text_of(ffn));
  out.add("vocab", function, text_of(vocab));
  out.add("max_seq", function, text_of(max_seq));
  out.add("norm_eps", function, text_of(norm_eps));
  out.add_if(rotary, "rope_theta", function, text_of(rope_theta));
  add_scaling(out, rope_scaling);
  out.add_if(rotary && !latent, "rotary_fraction", function, text_of(rotary_fraction));
  out.add("activation", function, activation_name(spec));
  out.add("norm_placement", function, word_of(kNormPlacements, norm_placement));
  out.add("embedding_width", function, text_of(embedding_width));
  out.add("qkv_bias", function, text_of(qkv_bias));
  out.add("out_bias", function, text_of(out_bias));
  out.add("mlp_bias", function, text_of(mlp_bias));
  out.add("qk_norm", function, text_of(qk_norm));
  // full_attention_first, _every and _layers together.
  std::string windowed = layers_with(spec, [&](int64_t layer) { return window_of_layer(spec, layer) > 0; });
  out.add_if(windowed != "no layer", "window", function, text_of(window));
  out.add("full_attention_every", function, fmt::format("(a window in {})", windowed));
  out.add("attention_chunk", function, text_of(attention_chunk));
  out.add("temperature_positions", function, text_of(temperature_positions));
  out.add_if(temperature_positions > 0, "temperature_strength", function, text_of(temperature_strength));
  out.add("inverse_layer_scaling", function, text_of(inverse_layer_scaling));
  out.add("parallel_residual", function, text_of(parallel_residual));
  out.add("no_rope_every", function, text_of(no_rope_every > layers ? 0 : no_rope_every));
  out.add("embedding_multiplier", function, text_of(embedding_multiplier));
  out.add("attention_multiplier", function,
          text_of(attention_multiplier == 0 ? 1 / std::sqrt(static_cast<double>(head_dim)) : attention_multiplier));
  out.add("residual_multiplier", function, text_of(residual_multiplier));
  out.add("logits_scaling", function, text_of(logits_scaling));
  add_latent(out, latent);
  add_experts(out, spec);
  out.add("mtp.depths", function, text_of(mtp_depths));
  out.add("tied_head", function, text_of(tied_head));
  out.add("init_std", training, text_of(init_std));
  // Checkpoints of older versions do not name it. Its row of the embedding gets no gradient.
  out.add("padding_token", training, text_of(padding_token));
  out.add("hf_type", naming, hf_type);
  out.add("bos_token", naming, text_of(bos_token));
  out.add("eos_tokens", naming, fmt::format("{}", fmt::join(eos_tokens, ", ")));
  return out.take();
}

std::vector<FieldDifference> function_differences(const ModelSpec& first, const ModelSpec& second) {
  if (first.architecture != second.architecture) return {{"architecture", first.architecture, second.architecture}};
  std::vector<FieldValue> of_first = field_values(first), of_second = field_values(second);
  BUG_IF(of_first.size() != of_second.size(), "two specs have {} and {} fields", of_first.size(), of_second.size());
  std::vector<FieldDifference> differences;
  for (size_t i = 0; i < of_first.size(); ++i)
    if (of_first[i].role == FieldRole::function && of_first[i].value != of_second[i].value)
      differences.push_back({of_first[i].name, std::move(of_first[i].value), std::move(of_second[i].value)});
  return differences;
}

}  // namespace sextant
