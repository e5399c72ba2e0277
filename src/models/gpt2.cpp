// GPT-2 and GPT-3: learned positions, LayerNorm before each half of a block, GELU, biases everywhere, the head tied to
// the embedding. (GPT-3's layers that see a band of tokens only are not there: every layer sees all.)
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  ValueId out = self_attention(b, m, frame, normed, {.qkv_bias = Bias::added, .out_bias = Bias::added});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId out = model_mlp(b, m, layer_norm(b, x, "norm", m.norm_eps), ops::gelu, Bias::added);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_gpt2(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("gpt2", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = with_positions(b, m, frame, embedded(b, m, frame, table));
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = layer_norm(b, x, "norm", m.norm_eps);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> gpt2_tensors(const ModelSpec& m) {
  HfTensors t;
  auto transposed = [&](const std::string& hf, const std::string& own, int64_t rows) {
    t.add(hf + ".weight", own + ".weight", rows);
    t.last().order = HfTensor::Order::transposed;
    t.add(hf + ".bias", own + ".bias", rows);
  };
  t.add("transformer.wte.weight", "embed.weight", m.vocab);
  t.add("transformer.wpe.weight", "positions.weight", m.max_seq);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("transformer.h.{}.", layer), fmt::format("layers.{}.", layer));
    t.add_with_bias("ln_1", "attn.norm", m.hidden);
    transposed("attn.c_attn", "attn.qkv", 3 * m.heads * m.head_dim);
    transposed("attn.c_proj", "attn.out", m.hidden);
    t.add_with_bias("ln_2", "mlp.norm", m.hidden);
    transposed("mlp.c_fc", "mlp.up", m.ffn);
    transposed("mlp.c_proj", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("transformer.ln_f", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kGpt2{"gpt2", build_gpt2, gpt2_tensors, "transformer."};

}  // namespace sextant
