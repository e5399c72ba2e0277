// Nemotron-4: squared ReLU, rotary positions for half of each head, grouped-query attention, LayerNorm, no other
// biases, a head of its own. Its files hold the weights of norms less 1 ("LayerNorm1P").
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId out = self_attention(b, m, frame, layer_norm(b, x, "norm", m.norm_eps), {.rope = rope_of(m)});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId out = model_mlp(b, m, layer_norm(b, x, "norm", m.norm_eps), ops::squared_relu, Bias::none);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_nemotron(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("nemotron", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = embedded(b, m, frame, table);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = layer_norm(b, x, "norm", m.norm_eps);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> nemotron_tensors(const ModelSpec& m) {
  HfTensors t;
  int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  auto add_norm = [&](const std::string& hf, const std::string& own) {
    t.add(hf + ".weight", own + ".weight", m.hidden);
    t.last().file_less = 1;
    t.add(hf + ".bias", own + ".bias", m.hidden);
  };
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("model.layers.{}.", layer), fmt::format("layers.{}.", layer));
    add_norm("input_layernorm", "attn.norm");
    t.add("self_attn.q_proj.weight", "attn.qkv.weight", 0, q);
    t.add("self_attn.k_proj.weight", "attn.qkv.weight", q, kv);
    t.add("self_attn.v_proj.weight", "attn.qkv.weight", q + kv, kv);
    t.add("self_attn.o_proj.weight", "attn.out.weight", m.hidden);
    add_norm("post_attention_layernorm", "mlp.norm");
    t.add("mlp.up_proj.weight", "mlp.up.weight", m.ffn);
    t.add("mlp.down_proj.weight", "mlp.down.weight", m.hidden);
  }
  t.begin("", "");
  add_norm("model.norm", "norm");
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kNemotron{"nemotron", build_nemotron, nemotron_tensors, "model."};

}  // namespace sextant
