// Llama 1, 2 and 3: RMSNorm before each half of a block, rotary positions, grouped-query attention, SwiGLU, no biases.
#include <fmt/format.h>

#include "models/frame.h"

namespace sextant {

namespace {

Heads heads_of(const ModelSpec& m) { return {m.heads, m.kv_heads, m.head_dim}; }

Rope rope_of(const ModelSpec& m) {
  Rope rope{.theta = m.rope_theta};
  if (m.rope_scaling) {
    rope.scale_factor = m.rope_scaling->factor;
    rope.low_freq_factor = m.rope_scaling->low_freq_factor;
    rope.high_freq_factor = m.rope_scaling->high_freq_factor;
    rope.original_max_positions = m.rope_scaling->original_max_positions;
  }
  return rope;
}

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  Heads heads = heads_of(m);
  ValueId normed = rms_norm(b, x, "norm", m.norm_eps);
  Packed qkv = packed_qkv(b, normed, {.heads = heads, .init_std = m.init_std});
  ValueId mixed = attention(b, qkv.rows, {.heads = qkv.heads, .rope = rope_of(m), .cache = frame.cache, .begins = frame.begins});
  ValueId out = linear(b, mixed, {.name = "out", .outputs = m.hidden, .init_std = residual_std(m.init_std, m.layers),
                                  .split = TensorSplit::inputs});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId normed = rms_norm(b, x, "norm", m.norm_eps);
  ValueId gate_up = linear(b, normed, {.name = "gate_up", .outputs = 2 * m.ffn, .init_std = m.init_std,
                                       .split = TensorSplit::outputs, .segments = {m.ffn, m.ffn}});
  ValueId inner = b.op(ops::swiglu, "swiglu", {gate_up});
  ValueId out = linear(b, inner, {.name = "down", .outputs = m.hidden, .init_std = residual_std(m.init_std, m.layers),
                                  .split = TensorSplit::inputs});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_llama(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("llama", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = b.parameter({.name = "embed.weight", .shape = {m.vocab, m.hidden}, .init = {Init::Kind::normal, m.init_std},
                               .split = TensorSplit::outputs});
  ValueId x = b.residual(b.op(ops::embedding, "embed", {frame.tokens, table}));
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = rms_norm(b, x, "norm", m.norm_eps);
  ValueId head = m.tied_head ? table
                             : b.parameter({.name = "head.weight", .shape = {m.vocab, m.hidden},
                                            .init = {Init::Kind::normal, m.init_std}, .split = TensorSplit::outputs});
  close_frame(b, use, frame, x, head);
  return b.take();
}

std::vector<HfTensor> llama_tensors(const ModelSpec& m) {
  std::vector<HfTensor> t{{"model.embed_tokens.weight", "embed.weight", 0, m.vocab}};
  int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  for (int layer = 0; layer < m.layers; ++layer) {
    std::string hf = fmt::format("model.layers.{}.", layer), own = fmt::format("layers.{}.", layer);
    t.push_back({hf + "input_layernorm.weight", own + "attn.norm.weight", 0, m.hidden});
    t.push_back({hf + "self_attn.q_proj.weight", own + "attn.qkv.weight", 0, q});
    t.push_back({hf + "self_attn.k_proj.weight", own + "attn.qkv.weight", q, kv});
    t.push_back({hf + "self_attn.v_proj.weight", own + "attn.qkv.weight", q + kv, kv});
    t.push_back({hf + "self_attn.o_proj.weight", own + "attn.out.weight", 0, m.hidden});
    t.push_back({hf + "post_attention_layernorm.weight", own + "mlp.norm.weight", 0, m.hidden});
    t.push_back({hf + "mlp.gate_proj.weight", own + "mlp.gate_up.weight", 0, m.ffn});
    t.push_back({hf + "mlp.up_proj.weight", own + "mlp.gate_up.weight", m.ffn, m.ffn});
    t.push_back({hf + "mlp.down_proj.weight", own + "mlp.down.weight", 0, m.hidden});
  }
  t.push_back({"model.norm.weight", "norm.weight", 0, m.hidden});
  if (!m.tied_head) t.push_back({"lm_head.weight", "head.weight", 0, m.vocab});
  return t;
}

}  // namespace

extern const Architecture kLlama{"llama", build_llama, llama_tensors, "model."};

}  // namespace sextant
