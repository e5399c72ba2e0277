// Granite 3: Llama with four multipliers: of the embedding, of attention's
// scores, of what each half of a block adds, and of the logits.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::granite {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.embedding_multiplier = m.embedding_multiplier, .rope = rope_of(m, use)});
}

double usual_attention(const ModelSpec& spec) {
  return 1 / std::sqrt(static_cast<double>(spec.head_dim));
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {});
  read_rope(reader, spec, RopePart::whole);
  spec.embedding_multiplier = reader.number("embedding_multiplier", 1);
  spec.residual_multiplier = reader.number("residual_multiplier", 1);
  spec.logits_scaling = reader.number("logits_scaling", 1);
  double attention = reader.number("attention_multiplier", 1);
  spec.attention_multiplier = spec.head_dim > 0 && attention == usual_attention(spec) ? 0 : attention;
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  read_biases(reader, spec, MlpBias::a_key);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["embedding_multiplier"] = spec.embedding_multiplier;
  out["attention_multiplier"] = spec.attention_multiplier > 0 ? spec.attention_multiplier : usual_attention(spec);
  out["residual_multiplier"] = spec.residual_multiplier;
  out["logits_scaling"] = spec.logits_scaling;
  write_biases(spec, out, MlpBias::a_key);
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

std::vector<Preset> granite_presets() {
  ModelSpec small{.vocab = 49155,
                  .max_seq = 4096,
                  .embedding_multiplier = 12,
                  .attention_multiplier = 0.015625,
                  .residual_multiplier = 0.22,
                  .logits_scaling = 8,
                  .tied_head = true,
                  .bos_token = 0,
                  .eos_tokens = {0}};
  ModelSpec large = small;
  large.attention_multiplier = 0.0078125;
  large.logits_scaling = 16;
  auto sees_further = [](ModelSpec spec) {
    spec.vocab = 49159, spec.max_seq = 131072, spec.rope_theta = 1e7;
    return spec;
  };
  // clang-format off
  return {
      //            name               about         layers hidden heads kv_heads ffn
      preset_of({"granite-3.0-2b", "IBM Granite 3.0 2B", 40,  2048,  32,   8,  8192}, small),
      preset_of({"granite-3.0-8b", "IBM Granite 3.0 8B", 40,  4096,  32,   8, 12800}, large),
      preset_of({"granite-3.3-2b", "IBM Granite 3.3 2B", 40,  2048,  32,   8,  8192}, sees_further(small)),
      preset_of({"granite-3.3-8b", "IBM Granite 3.3 8B", 40,  4096,  32,   8, 12800}, sees_further(large)),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "granite",
    .about = "Granite 3",
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias", "mlp_bias", "embedding_multiplier", "attention_multiplier",
                "residual_multiplier", "logits_scaling"},
    .defaults = {.tied_head = true},
    .check = check_biases,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "granite",
                  .class_name = "GraniteForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names(),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = granite_presets,
};

}  // namespace sextant::granite
