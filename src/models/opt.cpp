// OPT: GPT-2 with ReLU, and two rows of the table of positions that no position has.
#include "models/frame.h"
#include "models/hf_tensors.h"

namespace sextant {

namespace {

constexpr int64_t kUnusedPositions = 2;

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  ValueId out = self_attention(b, m, frame, normed, {.qkv_bias = Bias::added, .out_bias = Bias::added});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId out = model_mlp(b, m, layer_norm(b, x, "norm", m.norm_eps), ops::relu, Bias::added);
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_opt(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("opt", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  ValueId table = token_table(b, m);
  ValueId x = with_positions(b, m, frame, embedded(b, m, frame, table), kUnusedPositions);
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = layer_norm(b, x, "norm", m.norm_eps);
  close_frame(b, use, frame, x, output_head(b, m, table));
  return b.take();
}

std::vector<HfTensor> opt_tensors(const ModelSpec& m) {
  HfTensors t;
  t.begin("model.decoder.", "");
  t.add("embed_tokens.weight", "embed.weight", m.vocab);
  t.add("embed_positions.weight", "positions.weight", m.max_seq + kUnusedPositions);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin(fmt::format("model.decoder.layers.{}.", layer), fmt::format("layers.{}.", layer));
    t.add_with_bias("self_attn_layer_norm", "attn.norm", m.hidden);
    int64_t part = 0;
    for (const char* name : {"q", "k", "v"}) {
      for (const char* what : {"weight", "bias"})
        t.add(fmt::format("self_attn.{}_proj.{}", name, what), fmt::format("attn.qkv.{}", what), part * m.hidden,
              m.hidden);
      ++part;
    }
    t.add_with_bias("self_attn.out_proj", "attn.out", m.hidden);
    t.add_with_bias("final_layer_norm", "mlp.norm", m.hidden);
    t.add_with_bias("fc1", "mlp.up", m.ffn);
    t.add_with_bias("fc2", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("model.decoder.final_layer_norm", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

}  // namespace

extern const Architecture kOpt{"opt", build_opt, opt_tensors, "model."};

}  // namespace sextant
