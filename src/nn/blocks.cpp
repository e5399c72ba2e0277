#include "nn/blocks.h"

#include <cmath>

namespace sextant {

ValueId linear(Builder& b, ValueId x, const Linear& spec) {
  auto scope = b.scope(spec.name);
  if (spec.split == TensorSplit::outputs) x = b.gathered(x);
  ValueId w = b.parameter({.name = "weight",
                           .shape = {spec.outputs, b.shape(x).last()},
                           .init = {Init::Kind::normal, spec.init_std},
                           .split = spec.split,
                           .segments = spec.segments});
  std::vector<ValueId> inputs{x, w};
  if (spec.bias == Bias::added) {
    // A bias follows the outputs of its weight; beside a weight split by inputs every rank holds it whole.
    TensorSplit split = spec.split == TensorSplit::outputs ? TensorSplit::outputs : TensorSplit::whole;
    inputs.push_back(b.parameter({.name = "bias", .shape = {spec.outputs}, .split = split, .segments = spec.segments}));
  }
  return b.op(ops::linear, "out", std::move(inputs));
}

double residual_std(double init_std, int64_t layers) {
  return init_std / std::sqrt(2.0 * static_cast<double>(layers));
}

ValueId scaled(Builder& b, ValueId x, std::string_view name, double factor) {
  return factor == 1 ? x : b.op(ops::scale, name, {x}, {{"factor", factor}});
}

ValueId rms_norm(Builder& b, ValueId x, std::string_view name, double eps) {
  auto scope = b.scope(name);
  ValueId w = b.parameter({.name = "weight", .shape = {b.shape(x).last()}, .init = {Init::Kind::ones}});
  return b.op(ops::rms_norm, "out", {x, w}, {{"eps", eps}});
}

ValueId layer_norm(Builder& b, ValueId x, std::string_view name, double eps, Bias bias) {
  auto scope = b.scope(name);
  std::vector<ValueId> inputs{
      x, b.parameter({.name = "weight", .shape = {b.shape(x).last()}, .init = {Init::Kind::ones}})};
  if (bias == Bias::added) inputs.push_back(b.parameter({.name = "bias", .shape = {b.shape(x).last()}}));
  return b.op(ops::layer_norm, "out", std::move(inputs), {{"eps", eps}});
}

namespace {

// How many ranks share the heads.
int64_t head_ranks(const Builder& b) {
  return b.ranks(AxisRole::tensor) * (b.parallel().context == ContextMode::ulysses ? b.ranks(AxisRole::context) : 1);
}

// Query weights are split, key-value weights are copies, and each rank packs what it needs of them.
Packed repeated_kv(Builder& b, ValueId x, const PackedLinear& spec, int64_t copies) {
  auto scope = b.scope("qkv");
  x = b.gathered(x);
  const Heads& heads = spec.heads;
  int64_t width = b.shape(x).last(), q = heads.query * heads.dim, kv = heads.key_value * heads.dim;
  Init init{Init::Kind::normal, spec.init_std};
  ValueId wq = b.parameter(
      {.name = "q.weight", .shape = {q, width}, .init = init, .split = TensorSplit::outputs, .stored = {"weight", 0}});
  ValueId wkv = b.parameter({.name = "kv.weight",
                             .shape = {2 * kv, width},
                             .init = init,
                             .split = TensorSplit::copies,
                             .packed = {kv, kv},
                             .stored = {"weight", q, 1}});
  Attrs attrs = heads.attrs();
  attrs.set("copies", copies);
  ValueId w = b.op(ops::repeat_kv, "repeat_kv", {wq, wkv}, attrs);
  Heads repeated{heads.query, copies, heads.dim};
  b.set_segments(w, 0, repeated.segments());
  std::vector<ValueId> inputs{x, w};
  if (spec.bias == Bias::added) {
    ValueId bias_q =
        b.parameter({.name = "q.bias", .shape = {q}, .split = TensorSplit::outputs, .stored = {"bias", 0}});
    ValueId bias_kv = b.parameter({.name = "kv.bias",
                                   .shape = {2 * kv},
                                   .split = TensorSplit::copies,
                                   .packed = {kv, kv},
                                   .stored = {"bias", q, 1}});
    inputs.push_back(b.op(ops::repeat_kv_bias, "repeat_kv_bias", {bias_q, bias_kv}, attrs));
    b.set_segments(inputs.back(), 0, repeated.segments());
  }
  return {b.op(ops::linear, "out", std::move(inputs)), repeated};
}

}  // namespace

Packed packed_qkv(Builder& b, ValueId x, const PackedLinear& spec) {
  int64_t ranks = head_ranks(b);
  if (spec.heads.key_value % ranks != 0) return repeated_kv(b, x, spec, ranks);
  return {linear(b, x,
                 {.name = "qkv",
                  .outputs = spec.heads.packed_width(),
                  .init_std = spec.init_std,
                  .bias = spec.bias,
                  .split = TensorSplit::outputs,
                  .segments = spec.heads.segments()}),
          spec.heads};
}

ValueId qk_norm(Builder& b, const Packed& qkv, double eps) {
  // Each tensor-parallel rank norms other heads with the same weights.
  auto weight = [&](std::string_view name) {
    auto scope = b.scope(name);
    return b.parameter(
        {.name = "weight", .shape = {qkv.heads.dim}, .init = {Init::Kind::ones}, .split = TensorSplit::copies});
  };
  ValueId wq = weight("q_norm"), wk = weight("k_norm");
  Attrs attrs = qkv.heads.attrs();
  attrs.set("eps", eps);
  return b.op(ops::qk_norm, "qk_norm", {qkv.rows, wq, wk}, attrs);
}

ValueId qk_norm_wide(Builder& b, const Packed& qkv, const Heads& stored, double eps) {
  auto weight = [&](std::string_view name, int64_t heads) {
    auto scope = b.scope(name);
    return b.parameter(
        {.name = "weight", .shape = {heads * stored.dim}, .init = {Init::Kind::ones}, .split = TensorSplit::copies});
  };
  ValueId wq = weight("q_norm", stored.query), wk = weight("k_norm", stored.key_value);
  Attrs attrs = qkv.heads.attrs();
  ValueId squares = b.op(ops::qk_squares, "qk_squares", {qkv.rows}, attrs);
  attrs.set("eps", eps);
  return b.op(ops::qk_norm_wide, "qk_norm", {qkv.rows, wq, wk, squares}, attrs);
}

Attrs Heads::attrs() const {
  return {{"heads", query}, {"kv_heads", key_value}, {"head_dim", dim}};
}

namespace {

Attrs rope_attrs(const Heads& heads, const Rope& rope) {
  Attrs attrs = heads.attrs();
  attrs.set("theta", rope.theta);
  if (rope.dims > 0 && rope.dims < heads.dim) attrs.set("rotary_dim", rope.dims);
  if (rope.scale_factor > 0) attrs.set("scale_factor", rope.scale_factor);
  if (rope.ramp) {
    attrs.set("ramp_begin", rope.ramp->begin);
    attrs.set("ramp_end", rope.ramp->end);
  }
  if (!rope.frequency_divisors.empty()) attrs.set("frequency_divisors", rope.frequency_divisors);
  if (rope.attention_factor != 1) attrs.set("attention_factor", rope.attention_factor);
  if (rope.low_freq_factor > 0) {
    attrs.set("low_freq_factor", rope.low_freq_factor);
    attrs.set("high_freq_factor", rope.high_freq_factor);
    attrs.set("original_max_positions", rope.original_max_positions);
  }
  return attrs;
}

}  // namespace

ValueId attention(Builder& b, ValueId qkv, const Attention& spec) {
  if (spec.rope) {
    std::vector<ValueId> inputs{qkv};
    if (spec.cache) inputs.push_back(spec.cache->start);
    qkv = b.op(ops::rope, "rope", std::move(inputs), rope_attrs(spec.heads, *spec.rope));
  }
  Attrs attrs = spec.heads.attrs();
  if (spec.alibi == Alibi::added) attrs.set("alibi", int64_t{1});
  if (spec.scale != 0) attrs.set("scale", spec.scale);
  // A window that holds every sequence hides nothing.
  if (spec.window > 0 && spec.window < (spec.cache ? spec.cache->capacity : b.shape(qkv)[1]))
    attrs.set("window", spec.window);
  if (!spec.cache) {
    bool all_to_all = b.ranks(AxisRole::context) > 1 && b.parallel().context == ContextMode::ulysses;
    if (all_to_all) qkv = b.whole_sequences(qkv);
    std::vector<ValueId> inputs{qkv};
    if (spec.begins != kNoValue) inputs.push_back(spec.begins);
    if (spec.dropout.rate > 0) {
      inputs.push_back(spec.dropout_keys);
      spec.dropout.add_to(attrs);
    }
    ValueId y = b.op(ops::attention, "core", std::move(inputs), attrs);
    return all_to_all ? b.split_sequences(y) : y;
  }
  GlobalShape cache{b.shape(qkv)[0], spec.heads.key_value, spec.cache->capacity, spec.heads.dim};
  ValueId keys = b.cache(b.path("cache", "keys"), cache);
  ValueId values = b.cache(b.path("cache", "values"), cache);
  return b.op(ops::attention_cached, "core", {qkv, keys, values, spec.cache->start}, attrs);
}

ValueId mlp(Builder& b, ValueId normed, const Mlp& spec) {
  int64_t outputs = b.shape(normed).last();
  ValueId up = linear(b, normed,
                      {.name = "up",
                       .outputs = spec.inner,
                       .init_std = spec.init_std,
                       .bias = spec.bias,
                       .split = TensorSplit::outputs});
  ValueId inner = b.op(spec.activation, spec.activation.name, {up}, spec.activation_attrs);
  return linear(
      b, inner,
      {.name = "down", .outputs = outputs, .init_std = spec.down_std, .bias = spec.bias, .split = TensorSplit::inputs});
}

ValueId gated_mlp(Builder& b, ValueId normed, const Mlp& spec) {
  int64_t outputs = b.shape(normed).last();
  ValueId gate_up = linear(b, normed,
                           {.name = "gate_up",
                            .outputs = 2 * spec.inner,
                            .init_std = spec.init_std,
                            .bias = spec.bias,
                            .split = TensorSplit::outputs,
                            .segments = {spec.inner, spec.inner}});
  ValueId inner = b.op(spec.activation, spec.activation.name, {gate_up}, spec.activation_attrs);
  return linear(
      b, inner,
      {.name = "down", .outputs = outputs, .init_std = spec.down_std, .bias = spec.bias, .split = TensorSplit::inputs});
}

ExpertOutput expert_mlp(Builder& b, ValueId normed, const ExpertMlp& spec) {
  int64_t hidden = b.shape(normed).last();
  ExpertOutput output;
  ValueId weights = kNoValue;
  {
    // Every tensor-parallel rank routes the tokens that it has of the residual stream.
    auto scope = b.scope("router");
    ValueId router =
        b.parameter({.name = "weight", .shape = {spec.experts, hidden}, .init = {Init::Kind::normal, spec.init_std}});
    output.logits = b.op(ops::linear_wide, "out", {normed, router});
    Attrs routing = spec.routing;
    routing.set("top_k", spec.per_token);
    std::vector<ValueId> inputs{output.logits};
    output.counted_for = router;
    if (spec.bias_update_speed) {
      output.counted_for =
          b.parameter({.name = "correction", .shape = {spec.experts}, .balance_speed = spec.bias_update_speed});
      inputs.push_back(output.counted_for);
    }
    weights = b.op(ops::route, "route", std::move(inputs), routing);
    output.experts = b.output(1);
  }
  auto scope = b.scope("experts");
  ValueId x = b.gathered(normed), experts = b.gathered(output.experts);
  weights = b.gathered(weights);
  Attrs attrs{{"experts", spec.experts}};
  auto count = static_cast<size_t>(spec.experts);
  ValueId gate_up_weight = b.parameter({.name = "gate_up.weight",
                                        .shape = {spec.experts * 2 * spec.inner, hidden},
                                        .init = {Init::Kind::normal, spec.init_std},
                                        .split = TensorSplit::outputs,
                                        .segments = std::vector<int64_t>(2 * count, spec.inner)});
  ValueId gate_up = b.op(ops::expert_up, "gate_up", {x, gate_up_weight, experts}, attrs);
  b.set_segments(gate_up, 2, {spec.inner, spec.inner});
  ValueId inner = b.op(ops::weighted_swiglu, "swiglu", {gate_up, weights});
  ValueId down_weight = b.parameter({.name = "down.weight",
                                     .shape = {spec.experts * hidden, spec.inner},
                                     .init = {Init::Kind::normal, spec.down_std},
                                     .split = TensorSplit::inputs,
                                     .packed = std::vector<int64_t>(count, hidden)});
  output.rows = b.op(ops::expert_down, "down", {inner, down_weight, experts}, attrs);
  return output;
}

namespace {

ExpertLoad load_by(const OpDef& def, Builder& b, const ExpertOutput& output, const ExpertMlp& spec) {
  Attrs attrs;
  if (spec.routing.integer_or("sigmoid", 0) != 0) attrs.set("sigmoid", int64_t{1});
  ValueId scores = b.op(def, "load", {output.logits, output.experts}, attrs);
  return {scores, b.output(1)};
}

}  // namespace

ExpertLoad expert_load(Builder& b, const ExpertOutput& output, const ExpertMlp& spec) {
  ExpertLoad load = load_by(ops::expert_load, b, output, spec);
  b.tally(load.counts, output.counted_for);
  return load;
}

ExpertLoad sequence_load(Builder& b, const ExpertOutput& output, const ExpertMlp& spec) {
  auto scope = b.scope("sequences");
  return load_by(ops::sequence_load, b, output, spec);
}

}  // namespace sextant
