// Nemotron-4: squared ReLU, rotary positions for half of each head, grouped-query attention, LayerNorm, no other
// biases, a head of its own. Its files hold the weights of norms less 1 ("LayerNorm1P").
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::nemotron {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(
      m, use, mesh,
      {.norm = NormKind::layer, .rope = rope_of(m, use), .mlp = MlpKind::plain, .activation = &ops::squared_relu});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 4096});
  spec.norm_eps = reader.number("norm_eps", 1e-5);
  spec.init_std = reader.number("initializer_range", 0.0134);
  spec.rotary_fraction = 0.5;
  read_rope(reader, spec, RopePart::of_head);
  reader.only_one_of("hidden_act", "relu2", {"relu2"});
  read_biases(reader, spec, MlpBias::a_key);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_biases(spec, out, MlpBias::a_key);
  out.erase("rms_norm_eps");
  out["norm_eps"] = spec.norm_eps;
  out["partial_rotary_factor"] = spec.rotary_fraction;
  out["hidden_act"] = "relu2";
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  auto add_norm = [&](const std::string& hf, const std::string& own) {
    t.add_less_one(hf, own, m.hidden);
    t.add(hf + ".bias", own + ".bias", m.hidden);
  };
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    add_norm("input_layernorm", "attn.norm");
    t.add_attention("self_attn", m);
    add_norm("post_attention_layernorm", "mlp.norm");
    t.add_linear("mlp.up_proj", "mlp.up", m.ffn, m.mlp_bias);
    t.add_linear("mlp.down_proj", "mlp.down", m.hidden, m.mlp_bias);
  }
  t.begin("", "");
  add_norm("model.norm", "norm");
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> nemotron_presets() {
  ModelSpec nemotron{
      .vocab = 256000, .max_seq = 4096, .rotary_fraction = 0.5, .init_std = 0.0134, .bos_token = 2, .eos_tokens = {3}};
  // clang-format off
  return {
      //            name               about              layers hidden heads kv_heads
      preset_of({"nemotron4-15b",  "NVIDIA Nemotron-4 15B",  32,  6144,  48,  8}, nemotron),
      preset_of({"nemotron4-340b", "NVIDIA Nemotron-4 340B", 96, 18432,  96,  8}, nemotron),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "nemotron",
    .about = "Nemotron-4",
    .published_as = {"gpt-sqrelu"},
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "rotary_fraction", "qkv_bias", "out_bias", "mlp_bias"},
    .defaults = {.rotary_fraction = 0.5, .tied_head = false},
    .check = check_biases,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "nemotron",
                  .class_name = "NemotronForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names(),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = nemotron_presets,
};

}  // namespace sextant::nemotron
