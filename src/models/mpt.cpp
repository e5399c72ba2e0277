// MPT: ALiBi instead of positions, GELU by erf, and no bias anywhere, not in norms either; the head tied to the
// embedding.
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId norm(Builder& b, const ModelSpec& m, ValueId x) {
  return layer_norm(b, x, "norm", m.norm_eps, Bias::none);
}

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId out = self_attention(b, m, frame, norm(b, m, x), {.alibi = Alibi::added});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId out = model_mlp(b, m, norm(b, m, x), ops::gelu_erf, Bias::none);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_mpt(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("mpt", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = embedded(b, m, frame, table);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  close_frame(b, use, frame, norm(b, m, x), output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> mpt_tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("transformer.wte.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("transformer.blocks.{}.", layer), fmt::format("layers.{}.", layer));
    t.add("norm_1.weight", "attn.norm.weight", m.hidden);
    t.add("attn.Wqkv.weight", "attn.qkv.weight", 3 * m.heads * m.head_dim);
    t.add("attn.out_proj.weight", "attn.out.weight", m.hidden);
    t.add("norm_2.weight", "mlp.norm.weight", m.hidden);
    t.add("ffn.up_proj.weight", "mlp.up.weight", m.ffn);
    t.add("ffn.down_proj.weight", "mlp.down.weight", m.hidden);
  }
  t.begin("", "");
  t.add("transformer.norm_f.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kMpt{"mpt", build_mpt, mpt_tensors, "transformer."};

}  // namespace sextant
