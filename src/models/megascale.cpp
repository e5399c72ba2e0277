// MegaScale's GPT (arXiv 2402.15627, section 3.1): attention and MLP read the same normed rows side by side, so that
// tensor-parallel ranks gather and sum once a block, or one after the other as in GPT-3; a window; learned positions,
// LayerNorm, GELU, biases everywhere, the head tied to the embedding.
//
// transformers has no such model: directories hold our own names under the model type "megascale".
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::megascale {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer,
                  .order = m.parallel_residual ? BlockOrder::parallel_one_norm : BlockOrder::pre_norm,
                  .learned_positions = 0,
                  .qkv_bias = Bias::added,
                  .out_bias = Bias::added,
                  .mlp = MlpKind::plain,
                  .activation = op_of(Activation::gelu_tanh),
                  .mlp_bias = Bias::added});
}

constexpr const char *kWindowKey = "sliding_window", *kParallelKey = "use_parallel_residual";

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.norm_eps = 1e-5, .tied_head = true});
  spec.window = reader.integer(kWindowKey, 0);
  spec.parallel_residual = reader.flag(kParallelKey, true);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  for (const char* rope : {"rope_parameters", "rope_theta", "rope_scaling"}) out.erase(rope);
  out[kWindowKey] = spec.window;
  out[kParallelKey] = spec.parallel_residual;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  auto add = [&](const std::string& name, int64_t rows) { t.add_with_bias(name, name, rows); };
  t.add("embed.weight", "embed.weight", m.vocab);
  t.add("positions.weight", "positions.weight", m.max_seq);
  for (int layer = 0; layer < m.layers; ++layer) {
    std::string prefix = fmt::format("layers.{}.", layer);
    t.begin(prefix, prefix);
    add(m.parallel_residual ? "norm" : "attn.norm", m.hidden);
    add("attn.qkv", (m.heads + 2 * m.kv_heads) * m.head_dim);
    add("attn.out", m.hidden);
    if (!m.parallel_residual) add("mlp.norm", m.hidden);
    add("mlp.up", m.ffn);
    add("mlp.down", m.hidden);
  }
  t.begin("", "");
  add("norm", m.hidden);
  if (!m.tied_head) t.add("head.weight", "head.weight", m.vocab);
  return t.take();
}

// By table 1 of the paper.
std::vector<Preset> megascale_presets() {
  ModelSpec megascale{.vocab = 64000, .max_seq = 2048, .parallel_residual = true, .tied_head = true};
  // clang-format off
  return {
      //            name             about                layers hidden heads
      preset_of({"megascale-175b", "MegaScale's GPT 175B", 96,  12288, 128}, megascale),
      preset_of({"megascale-530b", "MegaScale's GPT 530B", 105, 20480, 160}, megascale),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "megascale",
    .about = "MegaScale's GPT",
    .positions = Positions::learned,
    .free_heads = true,
    .options = {"window", "parallel_residual"},
    .defaults = {.parallel_residual = true, .tied_head = true},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "megascale.",
    .hf_types = {{.model_type = "megascale",
                  .class_name = "MegascaleForCausalLM",
                  .known = HfKnown::ours,
                  .read = read,
                  .write = write,
                  .names = common_names(),
                  .dropouts = {attention_dropout()}}},
    .presets = megascale_presets,
};

}  // namespace sextant::megascale
