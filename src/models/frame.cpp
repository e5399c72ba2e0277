#include "models/frame.h"

namespace sextant {

Frame open_frame(Builder& b, const Use& use) {
  Frame frame{.tokens = b.feed("tokens", DType::i32, {use.batch, use.seq})};
  if (use.documents) frame.begins = b.feed("begins", DType::i32, {use.batch, use.seq});
  if (use.kind == Use::Kind::generate) {
    frame.cache = CachePosition{b.feed("start", DType::i32, {}), use.cache_positions};
    frame.at = b.feed("at", DType::i32, {});
  }
  return frame;
}

void close_frame(Builder& b, const Use& use, const Frame& frame, ValueId x, ValueId head) {
  if (use.kind == Use::Kind::loss) {
    ValueId targets = b.feed("targets", DType::i32, {use.batch, use.seq});
    b.feed("loss_scale", wide_of(use.dtype), {});  // the gradient of the loss: 1/tokens of the global batch
    b.fetch(b.op(ops::head_loss, "head", {b.gathered(x), head, targets}, {{"z_loss", use.z_loss}}), "loss");
    return;
  }
  ValueId last = b.op(ops::take_position, "last", {x, frame.at});
  b.fetch(b.op(ops::linear, "head", {last, head}), "logits");
}

ValueId token_table(Builder& b, const ModelSpec& m) {
  return b.parameter({.name = "embed.weight",
                      .shape = {m.vocab, m.hidden},
                      .init = {Init::Kind::normal, m.init_std},
                      .split = TensorSplit::outputs});
}

ValueId output_head(Builder& b, const ModelSpec& m, ValueId table) {
  if (m.tied_head) return table;
  return b.parameter({.name = "head.weight",
                      .shape = {m.vocab, m.hidden},
                      .init = {Init::Kind::normal, m.init_std},
                      .split = TensorSplit::outputs});
}

ValueId embedded(Builder& b, const ModelSpec& m, const Frame& frame, ValueId table) {
  Attrs attrs;
  if (m.padding_token) attrs.set("padding", *m.padding_token);
  return b.residual(b.op(ops::embedding, "embed", {frame.tokens, table}, attrs));
}

ValueId with_positions(Builder& b, const ModelSpec& m, const Frame& frame, ValueId x, int64_t unused) {
  ValueId table = b.parameter(
      {.name = "positions.weight", .shape = {m.max_seq + unused, m.hidden}, .init = {Init::Kind::normal, m.init_std}});
  std::vector<ValueId> inputs{x, table};
  if (frame.cache) inputs.push_back(frame.cache->start);
  Attrs attrs;
  if (unused > 0) attrs.set("offset", unused);
  return b.op(ops::position_embedding, "positions", std::move(inputs), attrs);
}

Rope rope_of(const ModelSpec& m) {
  Rope rope{.theta = m.rope_theta, .dims = rotary_dims(m)};
  if (m.rope_scaling) {
    rope.scale_factor = m.rope_scaling->factor;
    rope.low_freq_factor = m.rope_scaling->low_freq_factor;
    rope.high_freq_factor = m.rope_scaling->high_freq_factor;
    rope.original_max_positions = m.rope_scaling->original_max_positions;
  }
  return rope;
}

ValueId self_attention(Builder& b, const ModelSpec& m, const Frame& frame, ValueId normed, const SelfAttention& spec) {
  Packed qkv = packed_qkv(b, normed,
                          {.heads = {m.heads, m.kv_heads, m.head_dim}, .init_std = m.init_std, .bias = spec.qkv_bias});
  if (spec.qk_norm_eps) qkv.rows = qk_norm(b, qkv, *spec.qk_norm_eps);
  ValueId mixed = attention(
      b, qkv.rows,
      {.heads = qkv.heads, .rope = spec.rope, .alibi = spec.alibi, .cache = frame.cache, .begins = frame.begins});
  return linear(b, mixed,
                {.name = "out",
                 .outputs = m.hidden,
                 .init_std = residual_std(m.init_std, m.layers),
                 .bias = spec.out_bias,
                 .split = TensorSplit::inputs});
}

ValueId model_mlp(Builder& b, const ModelSpec& m, ValueId normed, const OpDef& activation, Bias bias) {
  return mlp(b, normed,
             {.activation = activation,
              .inner = m.ffn,
              .init_std = m.init_std,
              .down_std = residual_std(m.init_std, m.layers),
              .bias = bias});
}

ValueId gated_mlp(Builder& b, const ModelSpec& m, ValueId normed) {
  ValueId gate_up = linear(b, normed,
                           {.name = "gate_up",
                            .outputs = 2 * m.ffn,
                            .init_std = m.init_std,
                            .split = TensorSplit::outputs,
                            .segments = {m.ffn, m.ffn}});
  ValueId inner = b.op(ops::swiglu, "swiglu", {gate_up});
  return linear(b, inner,
                {.name = "down",
                 .outputs = m.hidden,
                 .init_std = residual_std(m.init_std, m.layers),
                 .split = TensorSplit::inputs});
}

ValueId parallel_halves(Builder& b, ValueId x, ValueId attention, ValueId mlp) {
  ValueId both = b.op(ops::add, "halves", {attention, mlp});
  return b.op(ops::add, "add", {x, b.residual(both)});
}

}  // namespace sextant
