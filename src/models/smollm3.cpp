// SmolLM3: Llama in which every fourth layer has no positions at all (NoPE),
// the head tied to the embedding.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::smollm3 {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use)});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 32768, .kv_heads = 4, .tied_head = true, .rope_theta = 2e6});
  read_rope(reader, spec, RopePart::whole);
  read_no_rope_layers(reader, spec);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  read_biases(reader, spec, MlpBias::a_key);
  reader.only("use_sliding_window", false);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_no_rope_layers(spec, out);
  write_biases(spec, out, MlpBias::a_key);
  out["use_sliding_window"] = false;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    t.add_gated_mlp(m);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> smollm3_presets() {
  ModelSpec smollm3{.vocab = 128256,
                    .max_seq = 65536,
                    .norm_eps = 1e-6,
                    .rope_theta = 5e6,
                    .no_rope_every = 4,
                    .tied_head = true,
                    .bos_token = 128000,
                    .eos_tokens = {128012}};
  return {preset_of({"smollm3-3b", "Hugging Face SmolLM3 3B", 36, 2048, 16, 4, 11008}, smollm3)};
}

}  // namespace

extern const ModelDef model{
    .name = "smollm3",
    .about = "SmolLM3",
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "no_rope_every", "qkv_bias", "out_bias", "mlp_bias"},
    .defaults = {.no_rope_every = 4, .tied_head = true},
    .check = check_biases,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "smollm3",
                  .class_name = "SmolLM3ForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but({{"no_rope_every", "no_rope_layer_interval"}}),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{128004}}},
    .presets = smollm3_presets,
};

}  // namespace sextant::smollm3
