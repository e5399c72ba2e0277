// BLOOM: ALiBi instead of positions, a LayerNorm behind the embedding too, GELU, biases everywhere, the head tied to
// the embedding.
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  ValueId out = self_attention(b, m, frame, normed,
                               {.qkv_bias = Bias::added, .out_bias = Bias::added, .rope = {}, .alibi = Alibi::added});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId out = model_mlp(b, m, layer_norm(b, x, "norm", m.norm_eps), ops::gelu, Bias::added);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_bloom(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("bloom", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = layer_norm(b, embedded(b, m, frame, table), "embed_norm", m.norm_eps);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = layer_norm(b, x, "norm", m.norm_eps);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> bloom_tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("transformer.word_embeddings.weight", "embed.weight", m.vocab);
  t.add_with_bias("transformer.word_embeddings_layernorm", "embed_norm", m.hidden);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("transformer.h.{}.", layer), fmt::format("layers.{}.", layer));
    t.add_with_bias("input_layernorm", "attn.norm", m.hidden);
    t.add_head_by_head("self_attention.query_key_value.weight", "attn.qkv.weight", m);
    t.add_head_by_head("self_attention.query_key_value.bias", "attn.qkv.bias", m);
    t.add_with_bias("self_attention.dense", "attn.out", m.hidden);
    t.add_with_bias("post_attention_layernorm", "mlp.norm", m.hidden);
    t.add_with_bias("mlp.dense_h_to_4h", "mlp.up", m.ffn);
    t.add_with_bias("mlp.dense_4h_to_h", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("transformer.ln_f", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kBloom{"bloom", build_bloom, bloom_tensors, "transformer."};

}  // namespace sextant
