// BLOOM: ALiBi instead of positions, a LayerNorm behind the embedding too, GELU, biases everywhere, the head tied to
// the embedding.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::bloom {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer,
                  .norm_of_embedding = true,
                  .qkv_bias = Bias::added,
                  .out_bias = Bias::added,
                  .alibi = Alibi::added,
                  .mlp = MlpKind::plain,
                  .activation = &ops::gelu,
                  .mlp_bias = Bias::added});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec{.layers = reader.integer("n_layer"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("n_head"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("seq_length", 2048),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  reader.only("apply_residual_connection_post_layernorm", false);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  out["n_layer"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["n_head"] = spec.heads;
  out["seq_length"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["apply_residual_connection_post_layernorm"] = false;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("transformer.word_embeddings.weight", "embed.weight", m.vocab);
  t.add_with_bias("transformer.word_embeddings_layernorm", "embed_norm", m.hidden);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("transformer.h", layer);
    t.add_with_bias("input_layernorm", "attn.norm", m.hidden);
    t.add_head_by_head("self_attention.query_key_value.weight", "attn.qkv.weight", m);
    t.add_head_by_head("self_attention.query_key_value.bias", "attn.qkv.bias", m);
    t.add_with_bias("self_attention.dense", "attn.out", m.hidden);
    t.add_with_bias("post_attention_layernorm", "mlp.norm", m.hidden);
    t.add_with_bias("mlp.dense_h_to_4h", "mlp.up", m.ffn);
    t.add_with_bias("mlp.dense_4h_to_h", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("transformer.ln_f", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> bloom_presets() {
  ModelSpec bloom{.vocab = 250880, .max_seq = 2048, .tied_head = true, .bos_token = 1, .eos_tokens = {2}};
  // clang-format off
  return {
      //            name          about               layers hidden heads
      preset_of({"bloom-560m", "BigScience BLOOM 560M", 24,   1024,  16}, bloom),
      preset_of({"bloom-1b1",  "BigScience BLOOM 1.1B", 24,   1536,  16}, bloom),
      preset_of({"bloom-1b7",  "BigScience BLOOM 1.7B", 24,   2048,  16}, bloom),
      preset_of({"bloom-3b",   "BigScience BLOOM 3B",   30,   2560,  32}, bloom),
      preset_of({"bloom-7b1",  "BigScience BLOOM 7.1B", 30,   4096,  32}, bloom),
      preset_of({"bloom-176b", "BigScience BLOOM 176B", 70,  14336, 112}, bloom),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "bloom",
    .about = "BLOOM",
    .positions = Positions::alibi,
    .free_ffn = false,
    .defaults = {.tied_head = true},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "transformer.",
    .hf_types =
        {{.model_type = "bloom",
          .class_name = "BloomForCausalLM",
          .read = read,
          .write = write,
          .names = {{"layers", "n_layer"},
                    {"hidden", "hidden_size"},
                    {"heads", "n_head"},
                    {"head_dim", "hidden_size"},
                    {"vocab", "vocab_size"},
                    {"max_seq", "seq_length"},
                    {"norm_eps", "layer_norm_epsilon"},
                    {"init_std", "initializer_range"}},
          .aliases = {{"n_embed", "hidden_size"}, {"num_attention_heads", "n_head"}, {"num_hidden_layers", "n_layer"}},
          .dropouts = {attention_dropout(), {"hidden_dropout", {&DropoutRates::hidden}}}}},
    .presets = bloom_presets,
};

}  // namespace sextant::bloom
