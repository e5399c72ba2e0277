// GPT-2: learned positions, LayerNorm before each half of a block, GELU, biases everywhere, the head tied to the embedding.
#include <fmt/format.h>

#include "models/frame.h"

namespace sextant {

namespace {

Heads heads_of(const ModelSpec& m) { return {m.heads, m.heads, m.head_dim}; }

ValueId attention_half(Builder& b, const ModelSpec& m, ValueId x, const Frame& frame) {
  auto scope = b.scope("attn");
  Heads heads = heads_of(m);
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  ValueId qkv = linear(b, normed, {.name = "qkv", .outputs = heads.packed_width(), .init_std = m.init_std,
                                   .bias = Bias::added, .split = TensorSplit::outputs, .segments = heads.segments()});
  ValueId mixed = attention(b, qkv, {.heads = heads, .rope = {}, .cache = frame.cache, .begins = frame.begins});
  ValueId out = linear(b, mixed, {.name = "out", .outputs = m.hidden, .init_std = residual_std(m.init_std, m.layers), .bias = Bias::added,
                                  .split = TensorSplit::inputs});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

ValueId mlp_half(Builder& b, const ModelSpec& m, ValueId x) {
  auto scope = b.scope("mlp");
  ValueId normed = layer_norm(b, x, "norm", m.norm_eps);
  ValueId up = linear(b, normed, {.name = "up", .outputs = m.ffn, .init_std = m.init_std, .bias = Bias::added,
                                  .split = TensorSplit::outputs});
  ValueId inner = b.op(ops::gelu, "gelu", {up});
  ValueId out = linear(b, inner, {.name = "down", .outputs = m.hidden, .init_std = residual_std(m.init_std, m.layers), .bias = Bias::added,
                                  .split = TensorSplit::inputs});
  return b.op(ops::add, "add", {x, b.residual(out)});
}

Graph build_gpt2(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Builder b("gpt2", mesh, use.parallel, use.dtype);
  Frame frame = open_frame(b, use);
  Init normal{Init::Kind::normal, m.init_std};
  ValueId table = b.parameter({.name = "embed.weight", .shape = {m.vocab, m.hidden}, .init = normal,
                               .split = TensorSplit::outputs});
  ValueId positions = b.parameter({.name = "positions.weight", .shape = {m.max_seq, m.hidden}, .init = normal});
  ValueId x = b.residual(b.op(ops::embedding, "embed", {frame.tokens, table}));
  std::vector<ValueId> inputs{x, positions};
  if (frame.cache) inputs.push_back(frame.cache->start);
  x = b.op(ops::position_embedding, "positions", std::move(inputs));
  for (int layer = 0; layer < m.layers; ++layer) {
    auto block = b.block(fmt::format("layers.{}", layer), layer);
    x = attention_half(b, m, x, frame);
    x = mlp_half(b, m, x);
  }
  x = layer_norm(b, x, "norm", m.norm_eps);
  ValueId head = m.tied_head ? table
                             : b.parameter({.name = "head.weight", .shape = {m.vocab, m.hidden}, .init = normal,
                                            .split = TensorSplit::outputs});
  close_frame(b, use, frame, x, head);
  return b.take();
}

std::vector<HfTensor> gpt2_tensors(const ModelSpec& m) {
  std::vector<HfTensor> t{{"transformer.wte.weight", "embed.weight", 0, m.vocab},
                          {"transformer.wpe.weight", "positions.weight", 0, m.max_seq}};
  struct Pair {
    const char* hf;
    const char* own;
    int64_t rows;
    HfTensor::Order weight_order;
  };
  using enum HfTensor::Order;
  for (int layer = 0; layer < m.layers; ++layer) {
    std::string hf = fmt::format("transformer.h.{}.", layer), own = fmt::format("layers.{}.", layer);
    for (const Pair& p : {Pair{"ln_1", "attn.norm", m.hidden, as_is},
                          Pair{"attn.c_attn", "attn.qkv", 3 * m.heads * m.head_dim, transposed},
                          Pair{"attn.c_proj", "attn.out", m.hidden, transposed}, Pair{"ln_2", "mlp.norm", m.hidden, as_is},
                          Pair{"mlp.c_fc", "mlp.up", m.ffn, transposed}, Pair{"mlp.c_proj", "mlp.down", m.hidden, transposed}}) {
      t.push_back({hf + p.hf + ".weight", own + p.own + ".weight", 0, p.rows, p.weight_order});
      t.push_back({hf + p.hf + ".bias", own + p.own + ".bias", 0, p.rows});
    }
  }
  t.push_back({"transformer.ln_f.weight", "norm.weight", 0, m.hidden});
  t.push_back({"transformer.ln_f.bias", "norm.bias", 0, m.hidden});
  if (!m.tied_head) t.push_back({"lm_head.weight", "head.weight", 0, m.vocab});
  return t;
}

}  // namespace

extern const Architecture kGpt2{"gpt2", build_gpt2, gpt2_tensors, "transformer."};

}  // namespace sextant
