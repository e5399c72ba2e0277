#include "models/decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/mtp_paths.h"
#include "models/router_losses.h"

namespace sextant {

namespace {

// The feeds of a use, made before the model's first op.
struct Frame {
  ValueId tokens = kNoValue;
  ValueId begins = kNoValue;           // with a mask of documents
  ValueId dropout_keys = kNoValue;     // with dropout
  std::optional<CachePosition> cache;  // generation only
  ValueId at = kNoValue;               // generation only: the position whose logits are wanted
};

Frame open_frame(Builder& b, const Use& use) {
  Frame frame{.tokens = b.feed("tokens", DType::i32, {use.batch, use.seq})};
  if (use.documents) frame.begins = b.feed("begins", DType::i32, {use.batch, use.seq});
  if (use.dropout.any()) frame.dropout_keys = b.feed("dropout_keys", DType::i64, {use.batch});
  if (use.kind == Use::Kind::generate) {
    frame.cache = CachePosition{b.feed("start", DType::i32, {}), use.cache_positions};
    frame.at = b.feed("at", DType::i32, {});
  }
  return frame;
}

// A bias that the architecture always has, or that the spec asks for.
Bias either(Bias always, bool asked_for) {
  return asked_for ? Bias::added : always;
}

// Where dropout stands. No two sites of a model have the same number, so that each leaves out elements of its own.
enum class DropoutSite : uint8_t { embedding, attention, attention_out, mlp_out };

// Blocks count from 0; the embedding stands before them.
int64_t site_number(DropoutSite site, int64_t layer) {
  return 4 * (layer + 1) + static_cast<int64_t>(site);
}

// Of the op route, besides top_k.
Attrs routing_attrs(const ExpertsSpec& experts) {
  Attrs attrs;
  if (experts.normalise) attrs.set("normalise", int64_t{1});
  if (experts.score == ExpertScore::sigmoid) attrs.set("sigmoid", int64_t{1});
  if (experts.scale != 1) attrs.set("scale", experts.scale);
  if (experts.keep_groups < experts.groups) {
    attrs.set("groups", experts.groups);
    attrs.set("keep_groups", experts.keep_groups);
    attrs.set("group_top", experts.group_top);
  }
  return attrs;
}

// Writes one model op by op.
class Writer {
 public:
  Writer(Builder& b, const ModelSpec& m, const Decoder& d, const Use& use)
      : b_(b),
        m_(m),
        d_(d),
        dropout_(use.dropout),
        expert_gradients_(use.expert_gradients),
        frame_(open_frame(b, use)) {
    if (m.experts && use.kind == Use::Kind::loss) routers_.emplace(b, *m.experts, use);
  }

  ValueId token_table() { return vocabulary_matrix("embed.weight"); }

  // The residual stream in front of the first block.
  ValueId embedded(ValueId table) {
    ValueId x = rows_of(frame_.tokens, table);
    x = projected(x, "project_in", m_.hidden);
    x = scaled(b_, x, "embed_scale", d_.embedding_multiplier);
    if (d_.learned_positions) x = with_positions(x, *d_.learned_positions);
    if (d_.norm_of_embedding) x = norm(x, "embed_norm");
    return dropped(x, dropout_.embedding, DropoutSite::embedding);
  }

  ValueId block(ValueId x, int64_t layer) {
    layer_ = layer;
    has_rope_ = m_.no_rope_every == 0 || (layer + 1) % m_.no_rope_every != 0;
    window_ = window_of_layer(m_, layer);
    scale_ = m_.attention_multiplier;
    if (m_.inverse_layer_scaling) scale_ = scale_of_scores() / static_cast<double>(layer + 1);
    if (m_.rope_scaling && score_factor(*m_.rope_scaling) != 1)
      scale_ = scale_of_scores() * score_factor(*m_.rope_scaling);
    if (d_.order != BlockOrder::parallel && d_.order != BlockOrder::parallel_one_norm) {
      x = attention_half(x);
      return mlp_half(x);
    }
    // Tensor-parallel ranks sum what both give in one message.
    ValueId both = d_.order == BlockOrder::parallel ? with_own_norms(x) : with_one_norm(x);
    return added(x, b_.residual(both));
  }

  ValueId norm(ValueId x, std::string_view name) {
    if (d_.norm == NormKind::rms) return rms_norm(b_, x, name, m_.norm_eps);
    return layer_norm(b_, x, name, m_.norm_eps, d_.norm == NormKind::layer ? Bias::added : Bias::none);
  }

  // `x` is what comes out of the last block.
  void close(const Use& use, ValueId x, ValueId table) {
    ValueId head = output_head(table);
    if (d_.final_norm) x = norm(x, "norm");
    ValueId rows = before_head(x);
    if (use.kind == Use::Kind::loss) {
      ValueId targets = b_.feed("targets", DType::i32, {use.batch, use.seq});
      b_.feed("loss_scale", wide_of(use.dtype), {});  // the gradient of the loss: 1/tokens of the global batch
      b_.fetch(b_.op(ops::head_loss, "head", {b_.gathered(rows), head, targets}, {{"z_loss", use.z_loss}}), "loss");
      for (int64_t depth = 1; use.mtp && depth <= m_.mtp_depths; ++depth) x = predict_ahead(use, x, depth, table, head);
      if (routers_) routers_->close();
      return;
    }
    ValueId last = b_.op(ops::take_position, "last", {rows, frame_.at});
    b_.fetch(b_.op(ops::linear, "head", {last, head}), "logits");
  }

 private:
  ValueId output_head(ValueId table) { return m_.tied_head ? table : vocabulary_matrix("head.weight"); }

  // The rows of the table that the tokens name, laid out as the residual stream.
  ValueId rows_of(ValueId tokens, ValueId table) {
    Attrs attrs;
    if (m_.padding_token) attrs.set("padding", *m_.padding_token);
    return b_.residual(b_.op(ops::embedding, "embed", {tokens, table}, attrs));
  }

  // The hidden states that the output head reads.
  ValueId before_head(ValueId x) {
    x = projected(x, "project_out", m_.embedding_width);
    return scaled(b_, x, "logits_scale", 1 / m_.logits_scaling);
  }

  // A depth of multi-token prediction: from what the model, or the depth before, gives for a position and the token
  // `depth` behind it, the one after that. Embedding and head are the model's. Gives what the next depth starts from.
  ValueId predict_ahead(const Use& use, ValueId x, int64_t depth, ValueId table, ValueId head) {
    BUG_IF(d_.learned_positions || d_.norm_of_embedding || m_.embedding_width > 0,
           "{}: multi-token prediction would need a second copy of what is between embedding and blocks",
           m_.architecture);
    int64_t layer = m_.layers + depth - 1;
    const std::string name = fmt::format("mtp.{}", depth - 1);
    MtpPaths paths = mtp_paths(depth);
    {
      auto block_scope = b_.block(name, static_cast<int>(layer));
      layer_ = layer;  // of the dropout below
      ValueId ahead = rows_of(b_.feed(paths.tokens, DType::i32, {use.batch, use.seq}), table);
      ahead = scaled(b_, ahead, "embed_scale", d_.embedding_multiplier);
      ahead = dropped(ahead, dropout_.embedding, DropoutSite::embedding);
      ValueId joined = b_.op(ops::join_columns, "joined", {norm(ahead, "enorm"), norm(x, "hnorm")},
                             {{"columns", m_.hidden}, {"others", m_.hidden}});
      x = b_.residual(
          linear(b_, joined,
                 {.name = "eh_proj", .outputs = m_.hidden, .init_std = m_.init_std, .split = TensorSplit::outputs}));
      x = block(x, layer);
    }
    // Behind the block, as the model's own norm and head are: their gradients read what comes out of it, so in the
    // block they would have all of it computed again before any of it is used up, with the rows of all rounds of
    // experts.
    auto behind = b_.outside_of_blocks(name);
    x = norm(x, "norm");
    ValueId targets = b_.feed(paths.targets, DType::i32, {use.batch, use.seq});
    b_.feed(paths.scale, wide_of(use.dtype), {});
    b_.fetch(b_.op(ops::head_loss, "head", {b_.gathered(before_head(x)), head, targets}, {{"z_loss", 0.0}}),
             paths.loss);
    return x;
  }

  ValueId vocabulary_matrix(std::string name) {
    return b_.parameter({.name = std::move(name),
                         .shape = {m_.vocab, embedding_width_of(m_)},
                         .init = {Init::Kind::normal, m_.init_std},
                         .split = TensorSplit::outputs});
  }

  // Between the width of embeddings and that of the residual stream, where they differ. Small beside a block: every
  // tensor-parallel rank computes all of it, of its part of the sequence if it has one.
  ValueId projected(ValueId x, std::string name, int64_t outputs) {
    if (m_.embedding_width == 0) return x;
    return linear(b_, x, {.name = std::move(name), .outputs = outputs, .init_std = m_.init_std});
  }

  // x plus the learned row of each position; `unused` rows of the table come first.
  ValueId with_positions(ValueId x, int64_t unused) {
    ValueId table = b_.parameter({.name = "positions.weight",
                                  .shape = {m_.max_seq + unused, m_.hidden},
                                  .init = {Init::Kind::normal, m_.init_std}});
    std::vector<ValueId> inputs{x, table};
    if (frame_.cache) inputs.push_back(frame_.cache->start);
    Attrs attrs;
    if (unused > 0) attrs.set("offset", unused);
    return b_.op(ops::position_embedding, "positions", std::move(inputs), attrs);
  }

  ValueId attention_half(ValueId x) {
    auto scope = b_.scope("attn");
    auto dropped_half = [&](ValueId half) {
      return added(x, dropped(b_.residual(half), dropout_.hidden, DropoutSite::attention_out));
    };
    if (d_.order == BlockOrder::output_norm) return dropped_half(norm(b_.residual(self_attention(x)), "norm"));
    if (d_.order == BlockOrder::post_norm) return norm(dropped_half(self_attention(x)), "norm");
    return dropped_half(self_attention(norm(x, "norm")));
  }

  ValueId mlp_half(ValueId x) {
    auto scope = b_.scope("mlp");
    auto dropped_half = [&](ValueId half) {
      return added(x, dropped(b_.residual(half), dropout_.hidden, DropoutSite::mlp_out));
    };
    if (d_.order == BlockOrder::output_norm) return dropped_half(norm(b_.residual(mlp(x)), "norm"));
    if (d_.order == BlockOrder::post_norm) return norm(dropped_half(mlp(x)), "norm");
    return dropped_half(mlp(norm(x, "norm")));
  }

  ValueId with_own_norms(ValueId x) {
    ValueId from_mlp = kNoValue, from_attention = kNoValue;
    {
      auto scope = b_.scope("mlp");
      from_mlp = dropped(mlp(norm(x, "norm")), dropout_.hidden, DropoutSite::mlp_out);
    }
    {
      auto scope = b_.scope("attn");
      from_attention = dropped(self_attention(norm(x, "norm")), dropout_.hidden, DropoutSite::attention_out);
    }
    return b_.op(ops::add, "halves", {from_attention, from_mlp});
  }

  ValueId with_one_norm(ValueId x) {
    ValueId normed = b_.gathered(norm(x, "norm"));  // once for both
    ValueId from_attention = kNoValue, from_mlp = kNoValue;
    {
      auto scope = b_.scope("attn");
      from_attention = dropped(self_attention(normed), dropout_.hidden, DropoutSite::attention_out);
    }
    {
      auto scope = b_.scope("mlp");
      from_mlp = dropped(mlp(normed), dropout_.hidden, DropoutSite::mlp_out);
    }
    return b_.op(ops::add, "halves", {from_attention, from_mlp});
  }

  // `half` is laid out as x.
  ValueId added(ValueId x, ValueId half) {
    half = scaled(b_, half, "residual_scale", m_.residual_multiplier);
    return b_.op(ops::add, "add", {x, half});
  }

  ValueId dropped(ValueId x, double rate, DropoutSite site) {
    if (rate == 0) return x;
    Attrs attrs;
    Dropout{rate, site_number(site, layer_)}.add_to(attrs);
    return b_.op(ops::dropout, site == DropoutSite::embedding ? "embed_dropout" : "dropout", {x, frame_.dropout_keys},
                 attrs);
  }

  // From normed rows to what is still to be added to the residual stream; so is what mlp gives.
  ValueId self_attention(ValueId normed) {
    Heads heads{m_.heads, m_.kv_heads, m_.head_dim};
    Packed qkv = m_.latent
                     ? latent_heads(normed)
                     : packed_qkv(b_, normed,
                                  {.heads = heads, .init_std = m_.init_std, .bias = either(d_.qkv_bias, m_.qkv_bias)});
    if (d_.qk_norm == QkNorm::heads) qkv.rows = qk_norm(b_, qkv, m_.norm_eps);
    if (d_.qk_norm == QkNorm::whole) qkv.rows = qk_norm_wide(b_, qkv, heads, m_.norm_eps);
    ValueId mixed = attention(
        b_, qkv.rows,
        {.heads = qkv.heads,
         .rope = has_rope_ ? d_.rope : std::nullopt,
         .unit_heads_eps = has_rope_ && d_.qk_norm == QkNorm::unit ? std::optional(m_.norm_eps) : std::nullopt,
         .temperature = has_rope_ ? std::nullopt : temperature(),
         .alibi = d_.alibi,
         .cache = frame_.cache,
         .begins = frame_.begins,
         .scale = scale_,
         .window = window_,
         .chunk = has_rope_ ? m_.attention_chunk : 0,
         .dropout = {dropout_.attention, site_number(DropoutSite::attention, layer_)},
         .dropout_keys = frame_.dropout_keys,
         .sinks = d_.sinks ? attention_sinks(b_, qkv.heads, m_.init_std) : kNoValue});
    return linear(b_, mixed,
                  {.name = "out",
                   .outputs = m_.hidden,
                   .init_std = residual_std(m_.init_std, m_.layers),
                   .bias = either(d_.out_bias, m_.out_bias),
                   .split = TensorSplit::inputs});
  }

  Packed latent_heads(ValueId normed) {
    const LatentSpec& latent = *m_.latent;
    return latent_qkv(b_, normed,
                      {.heads = {m_.heads, m_.kv_heads, m_.head_dim, latent.value_dim},
                       .q_rank = latent.q_rank,
                       .kv_rank = latent.kv_rank,
                       .shared_dim = latent.rope_dim,
                       .norm_eps = d_.latent_norm_eps,
                       .init_std = m_.init_std});
  }

  std::optional<Temperature> temperature() const {
    if (m_.temperature_positions == 0) return std::nullopt;
    return Temperature{m_.temperature_positions, m_.temperature_strength};
  }

  // The factor on attention scores so far.
  double scale_of_scores() const { return scale_ > 0 ? scale_ : 1 / std::sqrt(static_cast<double>(m_.head_dim)); }

  ValueId mlp(ValueId normed) {
    Mlp spec{.activation = *d_.activation.def,
             .activation_attrs = d_.activation.attrs,
             .inner = m_.ffn,
             .init_std = m_.init_std,
             .down_std = residual_std(m_.init_std, m_.layers),
             .bias = either(d_.mlp_bias, m_.mlp_bias)};
    if (layer_has_experts(m_, layer_)) return experts(normed, spec);
    return d_.mlp == MlpKind::gated ? gated_mlp(b_, normed, spec) : sextant::mlp(b_, normed, spec);
  }

  ValueId experts(ValueId normed, const Mlp& dense) {
    ExpertMlp spec{.experts = m_.experts->count,
                   .per_token = m_.experts->per_token,
                   .inner = m_.experts->ffn,
                   .routing = routing_attrs(*m_.experts),
                   .init_std = dense.init_std,
                   .down_std = dense.down_std,
                   .router_bias = d_.router_bias,
                   .bias = d_.expert_bias,
                   .weight_on = d_.routing_weight_on};
    if (m_.experts->swiglu_limit > 0) spec.clamped = {m_.experts->swiglu_limit, m_.experts->swiglu_alpha};
    if (d_.routing_weights == RoutingWeights::of_chosen) spec.routing = Attrs{{"chosen_only", 1}};
    if (expert_gradients_ != DType::f32) spec.gradients = ExpertMlp::Gradients::narrow;
    if (m_.experts->forced_balance) spec.routing.set("forced", int64_t{1});
    if (m_.experts->drop_above > 0 && routers_) {
      double balanced = static_cast<double>(b_.shape(normed)[1] * spec.per_token) / static_cast<double>(spec.experts);
      spec.drop = {.capacity = static_cast<int64_t>(std::ceil(m_.experts->drop_above * balanced)),
                   .by_weight = m_.experts->drop_policy == DropPolicy::probs};
    }
    if (m_.experts->correction_bias) spec.bias_update_speed = m_.experts->bias_update_speed;
    ExpertOutput output = expert_mlp(b_, normed, spec);
    if (routers_) routers_->add_layer(output, spec, expert_load(b_, output, spec));
    if (m_.experts->shared_ffn == 0) return output.rows;
    return b_.op(ops::add, "with_shared", {output.rows, shared_expert(normed, dense)});
  }

  ValueId shared_expert(ValueId normed, Mlp spec) {
    auto scope = b_.scope("shared");
    spec.inner = m_.experts->shared_ffn;
    ValueId rows = gated_mlp(b_, normed, spec);
    if (d_.shared_expert == SharedExpert::added) return rows;
    ValueId gate = linear(b_, normed, {.name = "gate", .outputs = 1, .init_std = m_.init_std});
    return b_.op(ops::row_gate, "gated", {rows, b_.gathered(gate)});
  }

  Builder& b_;
  const ModelSpec& m_;
  const Decoder& d_;
  const DropoutRates& dropout_;
  DType expert_gradients_;
  Frame frame_;
  std::optional<RouterLosses> routers_;  // with experts, where there is a loss
  // Of the block being written.
  int64_t layer_ = -1;
  bool has_rope_ = true;
  int64_t window_ = 0;
  double scale_ = 0;
};

}  // namespace

Graph decoder(const ModelSpec& m, const Use& use, const Mesh& mesh, const Decoder& d) {
  Builder b(m.architecture, mesh, use.parallel, use.dtype);
  Writer writer(b, m, d, use);
  ValueId table = writer.token_table();
  ValueId x = writer.embedded(table);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = writer.block(x, layer);
  }
  writer.close(use, x, table);
  return b.take();
}

namespace {

// The pairs between which yarn goes over from frequencies that stay to frequencies that are divided.
Rope::Ramp yarn_ramp(const ModelSpec& m, const RopeScaling& scaling) {
  auto dims = static_cast<double>(rotary_dims(m)), context = static_cast<double>(scaling.original_max_positions);
  auto pair_with = [&](double turns) {
    return dims * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(m.rope_theta));
  };
  Rope::Ramp ramp{pair_with(scaling.beta_fast), pair_with(scaling.beta_slow)};
  if (scaling.truncate) ramp = {std::floor(ramp.begin), std::ceil(ramp.end)};
  ramp = {std::max(ramp.begin, 0.0), std::min(ramp.end, dims - 1)};
  if (ramp.begin == ramp.end) ramp.end += 0.001;
  return ramp;
}

}  // namespace

Rope rope_of(const ModelSpec& m, const Use& use) {
  Rope rope{.theta = m.rope_theta, .dims = rotary_dims(m)};
  if (m.latent) rope.first = m.head_dim - m.latent->rope_dim;
  if (!m.rope_scaling) return rope;
  const RopeScaling& scaling = *m.rope_scaling;
  switch (scaling.type) {
    case RopeType::dynamic:
      return rope;
    case RopeType::linear:
      rope.scale_factor = scaling.factor;
      return rope;
    case RopeType::llama3:
      rope.scale_factor = scaling.factor;
      rope.low_freq_factor = scaling.low_freq_factor;
      rope.high_freq_factor = scaling.high_freq_factor;
      rope.original_max_positions = scaling.original_max_positions;
      return rope;
    case RopeType::yarn:
      rope.scale_factor = scaling.factor;
      rope.ramp = yarn_ramp(m, scaling);
      rope.attention_factor = scaling.attention_factor;
      return rope;
    case RopeType::longrope: {
      int64_t positions = use.kind == Use::Kind::generate ? use.cache_positions : use.seq;
      rope.frequency_divisors = positions > scaling.original_max_positions ? scaling.long_factor : scaling.short_factor;
      rope.attention_factor = scaling.attention_factor;
      return rope;
    }
  }
  BUG("unknown type of RoPE scaling");
}

}  // namespace sextant
