#include "nn/blocks.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "nn/expert_dispatch.h"

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

Packed latent_qkv(Builder& b, ValueId x, const LatentLinear& spec) {
  const Heads& heads = spec.heads;
  auto by_heads = [&](ValueId rows, std::string name, int64_t outputs) {
    return linear(
        b, rows,
        {.name = std::move(name), .outputs = outputs, .init_std = spec.init_std, .split = TensorSplit::outputs});
  };
  ValueId q = kNoValue;
  int64_t q_width = heads.query * heads.dim;
  if (spec.q_rank > 0) {
    ValueId narrow = linear(b, x, {.name = "q_a", .outputs = spec.q_rank, .init_std = spec.init_std});
    q = by_heads(rms_norm(b, narrow, "q_a_norm", spec.norm_eps), "q_b", q_width);
  } else {
    q = by_heads(x, "q", q_width);
  }
  ValueId narrow = linear(b, x, {.name = "kv_a", .outputs = spec.kv_rank + spec.shared_dim, .init_std = spec.init_std});
  ValueId latent =
      b.op(ops::split_columns, "kv_a_parts", {narrow}, {{"columns", spec.kv_rank}, {"others", spec.shared_dim}});
  ValueId shared = b.gathered(b.output(1));
  int64_t own = heads.dim - spec.shared_dim;
  ValueId kv = by_heads(rms_norm(b, latent, "kv_a_norm", spec.norm_eps), "kv_b",
                        heads.key_value * (own + heads.width_of_values()));
  Attrs attrs = heads.attrs();
  attrs.set("value_dim", heads.width_of_values());
  attrs.set("shared_dim", spec.shared_dim);
  ValueId rows = b.op(ops::latent_qkv, "qkv", {q, kv, shared}, attrs);
  b.set_segments(rows, 2, heads.segments());
  return {rows, heads};
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
  Attrs attrs{{"heads", query}, {"kv_heads", key_value}, {"head_dim", dim}};
  if (width_of_values() != dim) attrs.set("value_dim", value_dim);
  return attrs;
}

ValueId attention_sinks(Builder& b, const Heads& heads, double init_std) {
  return b.parameter(
      {.name = "sinks", .shape = {heads.query}, .init = {Init::Kind::normal, init_std}, .split = TensorSplit::outputs});
}

namespace {

Attrs rope_attrs(const Heads& heads, const Rope& rope) {
  Attrs attrs = heads.attrs();
  attrs.set("theta", rope.theta);
  if (rope.dims > 0 && rope.dims < heads.dim) attrs.set("rotary_dim", rope.dims);
  if (rope.first > 0) attrs.set("rotary_first", rope.first);
  if (rope.interleaved) attrs.set("interleaved", int64_t{1});
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

ValueId with_temperature(Builder& b, ValueId qkv, const Attention& spec) {
  Attrs attrs = spec.heads.attrs();
  attrs.set("positions", spec.temperature->positions);
  attrs.set("strength", spec.temperature->strength);
  std::vector<ValueId> inputs{qkv};
  if (spec.cache) inputs.push_back(spec.cache->start);
  return b.op(ops::attention_temperature, "temperature", std::move(inputs), attrs);
}

// Documents of a sequence that kernels make room for: those of half a thousand tokens and one that is cut in two.
// Shorter ones are masked.
int64_t documents_expected(int64_t positions) {
  constexpr int64_t kTokensOfADocument = 512;
  return 1 + (positions + kTokensOfADocument - 1) / kTokensOfADocument;
}

}  // namespace

ValueId attention(Builder& b, ValueId qkv, const Attention& spec) {
  if (spec.rope) {
    std::vector<ValueId> inputs{qkv};
    if (spec.cache) inputs.push_back(spec.cache->start);
    qkv = b.op(ops::rope, "rope", std::move(inputs), rope_attrs(spec.heads, *spec.rope));
  }
  const int64_t positions = spec.cache ? spec.cache->capacity : b.shape(qkv)[1];
  if (spec.unit_heads_eps) {
    Attrs norm = spec.heads.attrs();
    norm.set("eps", *spec.unit_heads_eps);
    qkv = b.op(ops::qk_norm, "qk_norm", {qkv}, norm);
  }
  // Steps that no position reaches change nothing.
  if (spec.temperature && spec.temperature->positions <= positions) qkv = with_temperature(b, qkv, spec);
  Attrs attrs = spec.heads.attrs();
  if (spec.alibi == Alibi::added) attrs.set("alibi", int64_t{1});
  if (spec.scale != 0) attrs.set("scale", spec.scale);
  // A window or chunk that holds every sequence hides nothing.
  if (spec.window > 0 && spec.window < positions) attrs.set("window", spec.window);
  if (spec.chunk > 0 && spec.chunk < positions) attrs.set("chunk", spec.chunk);
  if (!spec.cache) {
    bool all_to_all = b.ranks(AxisRole::context) > 1 && b.parallel().context == ContextMode::ulysses;
    if (all_to_all) qkv = b.whole_sequences(qkv);
    std::vector<ValueId> inputs{qkv};
    if (spec.sinks != kNoValue) inputs.push_back(spec.sinks);
    if (spec.begins != kNoValue) {
      inputs.push_back(spec.begins);
      bool ring = b.ranks(AxisRole::context) > 1 && !all_to_all;
      if (spec.sinks == kNoValue && !ring) attrs.set("sequence_documents", documents_expected(positions));
    }
    if (spec.dropout.rate > 0) {
      inputs.push_back(spec.dropout_keys);
      spec.dropout.add_to(attrs);
    }
    const OpDef& op = spec.sinks != kNoValue ? ops::sink_attention : ops::attention;
    ValueId y = b.op(op, "core", std::move(inputs), attrs);
    return all_to_all ? b.split_sequences(y) : y;
  }
  auto cache = [&](std::string_view name, int64_t width) {
    return b.cache(b.path("cache", name), {b.shape(qkv)[0], spec.heads.key_value, spec.cache->capacity, width});
  };
  ValueId keys = cache("keys", spec.heads.dim), values = cache("values", spec.heads.width_of_values());
  std::vector<ValueId> inputs{qkv, keys, values, spec.cache->start};
  if (spec.sinks != kNoValue) inputs.push_back(spec.sinks);
  return b.op(ops::attention_cached, "core", std::move(inputs), attrs);
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

namespace {

struct ExpertWeights {
  ValueId gate_up, down;
  ValueId gate_up_bias = kNoValue, down_bias = kNoValue;
};

ExpertWeights expert_weights(Builder& b, const ExpertMlp& spec, int64_t hidden) {
  auto count = static_cast<size_t>(spec.experts);
  // A rank's part of an expert is a part of gate and of up: rows of both, or pairs.
  std::vector<int64_t> segments(spec.clamped ? count : 2 * count, spec.clamped ? 2 * spec.inner : spec.inner);
  ValueId gate_up = b.parameter({.name = "gate_up.weight",
                                 .shape = {spec.experts * 2 * spec.inner, hidden},
                                 .init = {Init::Kind::normal, spec.init_std},
                                 .split = TensorSplit::outputs,
                                 .segments = segments,
                                 .of = WeightOf::experts});
  ValueId down = b.parameter({.name = "down.weight",
                              .shape = {spec.experts * hidden, spec.inner},
                              .init = {Init::Kind::normal, spec.down_std},
                              .split = TensorSplit::inputs,
                              .packed = std::vector<int64_t>(count, hidden),
                              .of = WeightOf::experts});
  if (spec.bias != Bias::added) return {gate_up, down};
  ValueId gate_up_bias = b.parameter({.name = "gate_up.bias",
                                      .shape = {spec.experts * 2 * spec.inner},
                                      .split = TensorSplit::outputs,
                                      .segments = segments,
                                      .of = WeightOf::experts});
  ValueId down_bias = b.parameter({.name = "down.bias", .shape = {spec.experts * hidden}, .of = WeightOf::experts});
  return {gate_up, down, gate_up_bias, down_bias};
}

// Tokens, and where the router sends each with what weight.
struct Routed {
  ValueId x, weights, experts;
};

// Of weighted_swiglu.
Attrs weighting(const ExpertMlp& spec) {
  Attrs attrs;
  if (spec.weight_on == ExpertMlp::WeightOn::input) attrs.set("on_input", int64_t{1});
  return attrs;
}

// Every rank has all experts, or a part of every one: tokens stay where they are.
ValueId on_slots(Builder& b, const ExpertMlp& spec, const Routed& routed, const ExpertWeights& w) {
  Attrs attrs{{"experts", spec.experts}}, products = attrs;
  if (spec.gradients == ExpertMlp::Gradients::narrow) products.set("narrow_gradient", int64_t{1});
  ValueId gate_up = b.op(ops::expert_up, "gate_up", {routed.x, w.gate_up, routed.experts}, products);
  if (!spec.clamped) b.set_segments(gate_up, 2, {spec.inner, spec.inner});
  if (w.gate_up_bias != kNoValue)
    gate_up = b.op(ops::expert_up_bias, "gate_up_bias", {gate_up, w.gate_up_bias, routed.experts}, attrs);
  ValueId inner = spec.clamped ? b.op(ops::weighted_clamped_swiglu, "swiglu", {gate_up, routed.weights},
                                      {{"limit", spec.clamped->limit}, {"alpha", spec.clamped->alpha}})
                               : b.op(ops::weighted_swiglu, "swiglu", {gate_up, routed.weights}, weighting(spec));
  ValueId rows = b.op(ops::expert_down, "down", {inner, w.down, routed.experts}, products);
  if (w.down_bias == kNoValue) return rows;
  return b.op(ops::expert_down_bias, "down_bias", {rows, w.down_bias, routed.weights, routed.experts}, attrs);
}

// Experts that ranks divide, for tokens that go to them as rows and come back.
class DividedExperts {
 public:
  DividedExperts(Builder& b, const ExpertMlp& spec, const ExpertWeights& weights, const Routed& routed)
      : b_(b), spec_(spec), weights_(weights), routed_(routed) {
    auto [sequences, positions] = b.token_groups();
    const GlobalShape& tokens = b.shape(routed.x);
    group_ = {{"batch", tokens[0] / sequences}, {"positions", tokens[1] / positions}};
    in_group_ = tokens[0] / sequences * (tokens[1] / positions);
    planned_ = dispatch_rows({.tokens = in_group_,
                              .per_token = spec.per_token,
                              .experts = spec.experts,
                              .ranks = ranks(),
                              .expert_groups = spec.routing.integer_or("groups", 1),
                              .keep_groups = spec.routing.integer_or("keep_groups", 1),
                              .most_of_expert = spec.drop ? spec.drop->capacity * group_.integer("batch") : 0},
                             b.parallel().expert_dispatch, b.parallel().expert_capacity);
    divide_into_rounds();
  }

  ValueId build() {
    if (is(ExpertDispatch::gather))
      routed_ = {b_.gathered_for_experts(routed_.x), b_.gathered_for_experts(routed_.weights),
                 b_.gathered_for_experts(routed_.experts)};
    else if (rounds_ > 1)  // their gradients are added up before they meet those of other readers
      routed_.x = b_.op(ops::scale, "of_all_rounds", {routed_.x}, {{"factor", 1.0}});
    // The last round first: backward then adds up rows in the order of their places in queues, or of their tokens. The
    // first one has the names that it has alone: what it counts lies in the same place in Programs of one round and of
    // several.
    ValueId sum = kNoValue;
    for (int64_t round = rounds_; --round > 0;) {
      auto scope = b_.scope(fmt::format("round{}", round));
      sum = add_round(round, sum);
    }
    return add_round(0, sum);
  }

 private:
  // Rows of this rank's experts, and what brings their tokens back.
  struct Sent {
    ValueId rows, weights, row_experts;
    ValueId sources;  // of what travels
  };

  bool is(ExpertDispatch dispatch) const { return planned_.dispatch == dispatch; }
  int64_t ranks() const { return b_.ranks(ExpertRole::expert); }

  void divide_into_rounds() {
    rounds_ = std::min(planned_.rounds, b_.parallel().expert_rounds);
    if (!is(ExpertDispatch::tokens)) return;
    // With all rounds, pieces so small that any routing of their tokens is served; else equal ones, which may lose
    // some.
    tokens_of_round_ = rounds_ == 1                 ? in_group_
                       : rounds_ == planned_.rounds ? planned_.tokens
                                                    : ceil_div(in_group_, rounds_);
    rounds_ = ceil_div(in_group_, tokens_of_round_);
  }

  ValueId add_round(int64_t round, ValueId sum) {
    Sent sent = is(ExpertDispatch::tokens) ? send_tokens(round) : send_rows(round);
    ValueId out = through_experts(sent.rows, sent.weights, sent.row_experts);
    if (is(ExpertDispatch::tokens)) out = b_.op(ops::rows_to_copies, "sum", {out, sent.row_experts}, of_copies());
    if (!is(ExpertDispatch::gather)) out = b_.from_experts(out);
    Attrs move = moves();
    move.set("last_first", int64_t{1});
    std::vector<ValueId> inputs{out, sent.sources};
    if (sum != kNoValue) {
      inputs.push_back(sum);
      move.set("accumulate", int64_t{1});
    }
    return b_.op(ops::combine, "combine", std::move(inputs), move);
  }

  // A row for each slot. Where all tokens are on every rank, each takes those of its experts.
  Sent send_rows(int64_t round) {
    Attrs map = map_attrs(round);
    if (is(ExpertDispatch::gather)) map.set("gathered", int64_t{1});
    ValueId sources = b_.op(ops::dispatch_map, "map", {routed_.experts}, map);
    count_lost(round, b_.output(2));
    ValueId row_experts = b_.to_experts(b_.output(1));
    if (is(ExpertDispatch::gather)) sources = b_.to_experts(sources);
    ValueId weights = send_weights(sources);
    ValueId rows = b_.to_experts(b_.op(ops::dispatch, "dispatch", {routed_.x, sources}, moves()));
    return {rows, weights, row_experts, sources};
  }

  // A copy of each token, from which the receiver makes the rows of its slots.
  Sent send_tokens(int64_t round) {
    Attrs map = map_attrs(round);
    map.set("copies", planned_.copies);
    map.set("tokens", tokens_of_round_);
    map.set("rounds", planned_.rounds);
    ValueId copies = b_.op(ops::copies_map, "map", {routed_.experts}, map);
    ValueId sources = b_.output(1), row_experts = b_.output(2);
    count_lost(round, b_.output(3));
    row_experts = b_.to_experts(row_experts);
    ValueId weights = send_weights(sources);
    ValueId sent = b_.to_experts(b_.op(ops::dispatch, "dispatch", {routed_.x, copies}, moves()));
    ValueId rows = b_.op(ops::copies_to_rows, "spread", {sent, row_experts}, of_copies());
    return {rows, weights, row_experts, copies};
  }

  ValueId send_weights(ValueId sources) {
    Attrs move = group_;
    move.set("top_k", spec_.per_token);
    return b_.to_experts(b_.op(ops::dispatch_weights, "dispatch_weights", {routed_.weights, sources}, move));
  }

  void count_lost(int64_t round, ValueId lost) {
    if (round == 0 && planned_.rounds > 1) b_.tally(lost, weights_.gate_up, TallyOf::lost_rows);
  }

  Attrs map_attrs(int64_t round) const {
    Attrs map = group_;
    map.set("blocks", ranks());
    map.set("capacity", planned_.capacity);
    map.set("most", planned_.most);
    map.set("round", round);
    map.set("experts_per_block", spec_.experts / ranks());
    return map;
  }

  // Of tokens to what travels, and back. Copies are added in the order of ranks: their places change with the round.
  Attrs moves() const {
    Attrs move = group_;
    move.set("top_k", spec_.per_token);
    move.set("capacity", is(ExpertDispatch::tokens) ? ranks() * planned_.copies : planned_.capacity);
    return move;
  }

  Attrs of_copies() const {
    return {{"capacity", planned_.capacity}, {"copies", planned_.copies}, {"experts", spec_.experts}};
  }

  ValueId through_experts(ValueId rows, ValueId weights, ValueId row_experts) {
    Attrs of_bias{{"experts", spec_.experts}, {"blocks", ranks()}};
    if (is(ExpertDispatch::tokens)) of_bias.set("by_token", int64_t{1});
    Attrs attrs = of_bias;
    attrs.set("filled", filled());
    ValueId gate_up = b_.op(ops::expert_rows, "gate_up", {rows, weights_.gate_up, row_experts}, attrs);
    if (!spec_.clamped) b_.set_segments(gate_up, 3, {spec_.inner, spec_.inner});
    if (weights_.gate_up_bias != kNoValue)
      gate_up = b_.op(ops::expert_rows_bias, "gate_up_bias", {gate_up, weights_.gate_up_bias, row_experts}, of_bias);
    ValueId inner = spec_.clamped ? b_.op(ops::weighted_clamped_swiglu_rows, "swiglu", {gate_up, weights},
                                          {{"limit", spec_.clamped->limit}, {"alpha", spec_.clamped->alpha}})
                                  : b_.op(ops::weighted_swiglu_rows, "swiglu", {gate_up, weights}, weighting(spec_));
    ValueId out = b_.op(ops::expert_rows, "down", {inner, weights_.down, row_experts}, attrs);
    if (weights_.down_bias == kNoValue) return out;
    return b_.op(ops::expert_rows_weighted_bias, "down_bias", {out, weights_.down_bias, weights, row_experts}, of_bias);
  }

  // Of the rows, how many are expected to hold a token.
  double filled() const {
    return static_cast<double>(in_group_ * spec_.per_token) /
           (static_cast<double>(rounds_) * static_cast<double>(ranks() * planned_.capacity));
  }

  Builder& b_;
  const ExpertMlp& spec_;
  const ExpertWeights& weights_;
  Routed routed_;
  Attrs group_;
  int64_t in_group_ = 0;
  DispatchRows planned_ = {};
  int64_t rounds_ = 1;           // of this Program
  int64_t tokens_of_round_ = 0;  // of a group, where tokens travel once per rank
};

ValueId on_rows(Builder& b, const ExpertMlp& spec, const Routed& routed, const ExpertWeights& w) {
  return DividedExperts(b, spec, w, routed).build();
}

}  // namespace

ExpertOutput expert_mlp(Builder& b, ValueId normed, const ExpertMlp& spec) {
  BUG_IF(spec.weight_on == ExpertMlp::WeightOn::input && (spec.clamped || spec.bias == Bias::added),
         "routing weights multiply the input of experts with biases or a clamped SwiGLU");
  int64_t hidden = b.shape(normed).last();
  ExpertOutput output;
  ValueId weights = kNoValue, kept = kNoValue;
  {
    // Every tensor-parallel rank routes the tokens that it has of the residual stream.
    auto scope = b.scope("router");
    ValueId router =
        b.parameter({.name = "weight", .shape = {spec.experts, hidden}, .init = {Init::Kind::normal, spec.init_std}});
    output.logits = b.op(ops::linear_wide, "out", {normed, router});
    if (spec.router_bias == Bias::added)
      output.logits =
          b.op(ops::row_bias, "biased", {output.logits, b.parameter({.name = "bias", .shape = {spec.experts}})});
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
    kept = output.experts = b.output(1);
    if (spec.drop) {
      Attrs attrs{{"capacity", spec.drop->capacity}, {"experts", spec.experts}};
      if (spec.drop->by_weight) attrs.set("by_weight", int64_t{1});
      weights =
          b.op(ops::drop_slots, "drop", {b.on_whole_sequences(weights), b.on_whole_sequences(output.experts)}, attrs);
      kept = b.output(1), output.dropped = b.output(2);
      weights = b.residual(weights), kept = b.residual(kept);
    }
  }
  auto scope = b.scope("experts");
  // Tokens that stay where they are go through all of their experts; the weight of a dropped slot is 0.
  bool divided = b.ranks(ExpertRole::expert) > 1;
  Routed routed{b.tokens_for_experts(normed), b.tokens_for_experts(weights),
                b.tokens_for_experts(divided ? kept : output.experts)};
  ExpertWeights w = expert_weights(b, spec, hidden);
  output.rows = divided ? on_rows(b, spec, routed, w) : on_slots(b, spec, routed, w);
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
