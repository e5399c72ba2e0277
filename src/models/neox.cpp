// GPT-NeoX-20B and Pythia: both halves of a block read the same residual stream, each through a LayerNorm of its own;
// rotary positions for a quarter of each head, GELU, biases everywhere, a head of its own.
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId attention_branch(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  return self_attention(b, m, frame, normed, {.qkv_bias = Bias::added, .out_bias = Bias::added, .rope = rope_of(m)});
}

ValueId mlp_branch(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  return model_mlp(b, m, normed, m.exact_gelu ? ops::gelu_erf : ops::gelu, Bias::added);
}

Graph build_neox(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("neox", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = embedded(b, m, frame, table);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = parallel_halves(b, x, attention_branch(b, m, x, frame), mlp_branch(b, m, x));
  }
  x = layer_norm(b, x, "norm", m.norm_eps);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> neox_tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("gpt_neox.embed_in.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("gpt_neox.layers.{}.", layer), fmt::format("layers.{}.", layer));
    t.add_with_bias("input_layernorm", "attn.norm", m.hidden);
    t.add_head_by_head("attention.query_key_value.weight", "attn.qkv.weight", m);
    t.add_head_by_head("attention.query_key_value.bias", "attn.qkv.bias", m);
    t.add_with_bias("attention.dense", "attn.out", m.hidden);
    t.add_with_bias("post_attention_layernorm", "mlp.norm", m.hidden);
    t.add_with_bias("mlp.dense_h_to_4h", "mlp.up", m.ffn);
    t.add_with_bias("mlp.dense_4h_to_h", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("gpt_neox.final_layer_norm", "norm", m.hidden);
  if (!m.tied_head) t.add("embed_out.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kNeox{"neox", build_neox, neox_tensors, "gpt_neox."};

}  // namespace sextant
