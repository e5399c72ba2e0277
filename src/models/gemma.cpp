// Gemma 1: Llama with GeGLU, embeddings scaled by the root of their width,
// heads of 256 whatever the width, the head tied to the embedding. Its files
// hold the weights of norms less 1.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::gemma {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.embedding_multiplier = std::sqrt(static_cast<double>(m.hidden)),
                  .rope = rope_of(m, use),
                  .activation = &ops::geglu});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 8192, .kv_heads = 16, .head_dim = 256, .tied_head = true});
  read_rope(reader, spec, RopePart::whole);
  // "gelu" is what the first releases say and do not mean: all are the tanh
  // form.
  for (const char* key : {"hidden_act", "hidden_activation"})
    reader.only_one_of(key, "gelu_pytorch_tanh", {"gelu_pytorch_tanh", "gelu"});
  read_biases(reader, spec, MlpBias::no_key);
  reader.only("use_bidirectional_attention", false);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["hidden_act"] = "gelu_pytorch_tanh";
  write_biases(spec, out, MlpBias::no_key);
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add_less_one("input_layernorm", "attn.norm", m.hidden);
    t.add_attention("self_attn", m);
    t.add_less_one("post_attention_layernorm", "mlp.norm", m.hidden);
    t.add_gated_mlp(m);
  }
  t.begin("", "");
  t.add_less_one("model.norm", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> gemma_presets() {
  ModelSpec gemma{
      .vocab = 256000, .max_seq = 8192, .norm_eps = 1e-6, .tied_head = true, .bos_token = 2, .eos_tokens = {1}};
  // clang-format off
  return {
      //            name        about        layers hidden heads kv_heads ffn head_dim
      preset_of({"gemma-2b", "Google Gemma 2B",  18,  2048,   8,   1, 16384, 256}, gemma),
      preset_of({"gemma-7b", "Google Gemma 7B",  28,  3072,  16,  16, 24576, 256}, gemma),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "gemma",
    .about = "Gemma 1",
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias"},
    .defaults = {.norm_eps = 1e-6, .tied_head = true},
    .check = check_biases,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "gemma",
                  .class_name = "GemmaForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names(),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{0}}},
    .presets = gemma_presets,
};

}  // namespace sextant::gemma
