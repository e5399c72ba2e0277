// PaLM: attention and MLP read the same normed rows side by side, all query heads share one key and value head, SwiGLU,
// rotary positions, no bias anywhere, not in norms either; the head tied to the embedding.
//
// transformers has no such model: directories hold our own names under the model type "palm", which nobody else reads.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::palm {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(
      m, use, mesh,
      {.norm = NormKind::layer_without_bias, .order = BlockOrder::parallel_one_norm, .rope = rope_of(m, use)});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.kv_heads = 1});
  read_rope(reader, spec, RopePart::whole);
  return spec;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
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

// By the paper.
std::vector<Preset> palm_presets() {
  ModelSpec palm{.vocab = 256000, .max_seq = 2048, .norm_eps = 1e-6, .tied_head = true};
  // clang-format off
  return {
      //            name          about       layers hidden heads kv_heads ffn head_dim
      preset_of({"palm-8b",   "Google PaLM 8B",   32,  4096, 16, 1, 0, 256}, palm),
      preset_of({"palm-62b",  "Google PaLM 62B",  64,  8192, 32, 1, 0, 256}, palm),
      preset_of({"palm-540b", "Google PaLM 540B", 118, 18432, 48, 1, 0, 256}, palm),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "palm",
    .about = "PaLM",
    .published_as = {"gpt-mqa-parallel"},
    .positions = Positions::rotary,
    .free_heads = true,
    .defaults = {.kv_heads = 1, .tied_head = true},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "palm.",
    .hf_types = {{.model_type = "palm",
                  .class_name = "PalmForCausalLM",
                  .known = HfKnown::ours,
                  .read = read,
                  .write = write_common,
                  .names = common_names(),
                  .dropouts = {attention_dropout()}}},
    .presets = palm_presets,
};

}  // namespace sextant::palm
