// StarCoder2: LayerNorm, GELU in its tanh form, biases everywhere, rotary
// positions, grouped-query attention, a window.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::starcoder2 {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer,
                  .qkv_bias = Bias::added,
                  .out_bias = Bias::added,
                  .rope = rope_of(m, use),
                  .mlp = MlpKind::plain,
                  .activation = &ops::gelu,
                  .mlp_bias = Bias::added});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 4096, .kv_heads = 2, .tied_head = true});
  spec.norm_eps = reader.number("norm_epsilon", 1e-5);
  spec.init_std = reader.number("initializer_range", 0.018042);
  read_rope(reader, spec, RopePart::whole);
  spec.window = read_window(reader, 0);
  reader.only_one_of("hidden_act", "gelu_pytorch_tanh", {"gelu_pytorch_tanh", "gelu_new"});  // the same formula
  reader.only_one_of("norm_type", "layer_norm", {"layer_norm"});
  reader.only_one_of("mlp_type", "default", {"default"});
  reader.only("use_bias", true);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out.erase("rms_norm_eps");
  out["norm_epsilon"] = spec.norm_eps;
  out["hidden_act"] = "gelu_pytorch_tanh";
  out["sliding_window"] = spec.window > 0 ? json(spec.window) : json();
  out["use_bias"] = true;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add_with_bias("input_layernorm", "attn.norm", m.hidden);
    t.add_qkv("self_attn", m);
    t.add_qkv("self_attn", m, "bias");
    t.add_with_bias("self_attn.o_proj", "attn.out", m.hidden);
    t.add_with_bias("post_attention_layernorm", "mlp.norm", m.hidden);
    t.add_with_bias("mlp.c_fc", "mlp.up", m.ffn);
    t.add_with_bias("mlp.c_proj", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("model.norm", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

Preset starcoder2(const PresetRow& row, double rope_theta, double init_std, bool tied_head) {
  return preset_of(row, {.vocab = 49152,
                         .max_seq = 16384,
                         .rope_theta = rope_theta,
                         .window = 4096,
                         .tied_head = tied_head,
                         .init_std = init_std,
                         .bos_token = 0,
                         .eos_tokens = {0}});
}

std::vector<Preset> starcoder2_presets() {
  // clang-format off
  return {
      //            name              about           layers hidden heads kv_heads ffn  rope_theta init_std tied_head
      starcoder2({"starcoder2-3b",  "BigCode StarCoder2 3B",  30, 3072, 24, 2, 12288}, 999999.4420358813, 0.018042, true),
      starcoder2({"starcoder2-7b",  "BigCode StarCoder2 7B",  32, 4608, 36, 4, 18432}, 1e6, 0.018042, true),
      starcoder2({"starcoder2-15b", "BigCode StarCoder2 15B", 40, 6144, 48, 4, 24576}, 1e5, 0.01275, false),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "starcoder2",
    .about = "StarCoder2",
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "window"},
    .defaults = {.tied_head = true},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "starcoder2",
                  .class_name = "Starcoder2ForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but({{"norm_eps", "norm_epsilon"}}),
                  .dropouts = {attention_dropout(),
                               {"embedding_dropout", {&DropoutRates::embedding}},
                               {"residual_dropout", {&DropoutRates::hidden}}},
                  .padding = HfPadding{}}},
    .presets = starcoder2_presets,
};

}  // namespace sextant::starcoder2
