// OLMo 2: RMSNorm behind attention and behind the MLP, before each is added; q
// and k are normed over their whole width, all heads together; rotary
// positions, SwiGLU, no biases, a head of its own.
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::olmo2 {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.order = BlockOrder::output_norm, .rope = rope_of(m, use), .qk_norm = QkNorm::whole});
}

int64_t ffn_of(int64_t hidden) {
  return round_up(hidden * 8 / 3, 256);
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 2048, .norm_eps = 1e-5});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  read_biases(reader, spec, MlpBias::no_key);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_biases(spec, out, MlpBias::no_key);
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add_attention("self_attn", m);
    t.add("self_attn.q_norm.weight", "attn.q_norm.weight", m.heads * m.head_dim);
    t.add("self_attn.k_norm.weight", "attn.k_norm.weight", m.kv_heads * m.head_dim);
    t.add("post_attention_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_gated_mlp(m);
    t.add("post_feedforward_layernorm.weight", "mlp.norm.weight", m.hidden);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> olmo2_presets() {
  ModelSpec olmo2{.vocab = 100352, .max_seq = 4096, .norm_eps = 1e-6, .rope_theta = 500000, .eos_tokens = {100257}};
  // clang-format off
  return {
      //            name         about      layers hidden heads kv_heads ffn
      preset_of({"olmo-2-1b",  "Ai2 OLMo 2 1B",  16,  2048,  16,  16,  8192}, olmo2),
      preset_of({"olmo-2-7b",  "Ai2 OLMo 2 7B",  32,  4096,  32,  32, 11008}, olmo2),
      preset_of({"olmo-2-13b", "Ai2 OLMo 2 13B", 40,  5120,  40,  40, 13824}, olmo2),
      preset_of({"olmo-2-32b", "Ai2 OLMo 2 32B", 64,  5120,  40,   8, 27648}, olmo2),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "olmo2",
    .about = "OLMo 2",
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias"},
    .defaults = {.tied_head = false},
    .ffn_of = ffn_of,
    .check = check_biases,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "olmo2",
                  .class_name = "Olmo2ForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names(),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{1}}},
    .presets = olmo2_presets,
};

}  // namespace sextant::olmo2
