// PaLM: attention and MLP read the same normed rows side by side, all query heads share one key and value head, SwiGLU,
// rotary positions, no bias anywhere, not in norms either; the head tied to the embedding.
//
// transformers has no such model: directories hold our own names under the model type "palm", which nobody else reads.
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId block_of(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  // Gathered here once for both branches.
  ValueId normed = b.gathered(layer_norm(b, x, "norm", m.norm_eps, Bias::none));
  ValueId mixed, inner;
  {
    auto scope = b.scope("attn");
    mixed = self_attention(b, m, frame, normed, {.rope = rope_of(m)});
  }
  {
    auto scope = b.scope("mlp");
    inner = gated_mlp(b, m, normed);
  }
  return parallel_halves(b, x, mixed, inner);
}

Graph build_palm(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("palm", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = embedded(b, m, frame, table);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = block_of(b, m, x, frame);
  }
  x = layer_norm(b, x, "norm", m.norm_eps, Bias::none);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> palm_tensors(const ModelSpec& m) {
  HfTensors t;
  auto add = [&](const std::string& name, int64_t rows) { t.add(name, name, rows); };
  add("embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    std::string prefix = fmt::format("layers.{}.", layer);
    t.begin(prefix, prefix);
    add("norm.weight", m.hidden);
    add("attn.qkv.weight", (m.heads + 2 * m.kv_heads) * m.head_dim);
    add("attn.out.weight", m.hidden);
    add("mlp.gate_up.weight", 2 * m.ffn);
    add("mlp.down.weight", m.hidden);
  }
  t.begin("", "");
  add("norm.weight", m.hidden);
  if (!m.tied_head) add("head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kPalm{"palm", build_palm, palm_tensors, "palm."};

}  // namespace sextant
