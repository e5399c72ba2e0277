// Llama 1, 2 and 3, and what differs from it in a detail: Mistral 7B, Qwen 2 (biases of q, k and v) and Qwen 3 (norms
// of their heads). RMSNorm before each half of a block, rotary positions, grouped-query attention, SwiGLU, no other
// biases.
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId normed = rms_norm(b, x, "norm", m.norm_eps);
  SelfAttention spec{.qkv_bias = m.qkv_bias ? Bias::added : Bias::none, .rope = rope_of(m)};
  if (m.qk_norm) spec.qk_norm_eps = m.norm_eps;
  ValueId out = self_attention(b, m, frame, normed, spec);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId normed = rms_norm(b, x, "norm", m.norm_eps);
  ValueId out = gated_mlp(b, m, normed);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_llama(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("llama", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = embedded(b, m, frame, table);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = rms_norm(b, x, "norm", m.norm_eps);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> llama_tensors(const ModelSpec& m) {
  HfTensors t;
  int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("model.layers.{}.", layer), fmt::format("layers.{}.", layer));
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add("self_attn.q_proj.weight", "attn.qkv.weight", 0, q);
    t.add("self_attn.k_proj.weight", "attn.qkv.weight", q, kv);
    t.add("self_attn.v_proj.weight", "attn.qkv.weight", q + kv, kv);
    if (m.qkv_bias) {
      t.add("self_attn.q_proj.bias", "attn.qkv.bias", 0, q);
      t.add("self_attn.k_proj.bias", "attn.qkv.bias", q, kv);
      t.add("self_attn.v_proj.bias", "attn.qkv.bias", q + kv, kv);
    }
    if (m.qk_norm) {
      t.add("self_attn.q_norm.weight", "attn.q_norm.weight", m.head_dim);
      t.add("self_attn.k_norm.weight", "attn.k_norm.weight", m.head_dim);
    }
    t.add("self_attn.o_proj.weight", "attn.out.weight", m.hidden);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    t.add("mlp.gate_proj.weight", "mlp.gate_up.weight", 0, m.ffn);
    t.add("mlp.up_proj.weight", "mlp.gate_up.weight", m.ffn, m.ffn);
    t.add("mlp.down_proj.weight", "mlp.down.weight", m.hidden);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kLlama{"llama", build_llama, llama_tensors, "model."};

}  // namespace sextant
