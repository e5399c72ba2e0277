// GPT-NeoX-20B and Pythia: both halves of a block read the same residual stream, each through a LayerNorm of its own;
// rotary positions for a quarter of each head, GELU, biases everywhere, a head of its own.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::neox {

namespace {

using nlohmann::json;

constexpr Activation kOwnActivation = Activation::gelu;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer,
                  .order = m.parallel_residual ? BlockOrder::parallel : BlockOrder::pre_norm,
                  .qkv_bias = Bias::added,
                  .out_bias = Bias::added,
                  .rope = rope_of(m, use),
                  .mlp = MlpKind::plain,
                  .activation = op_of(activation_of(m)),
                  .mlp_bias = Bias::added});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec{.layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", 2048),
                 .norm_eps = reader.number("layer_norm_eps", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", false),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  spec.ffn = reader.integer("intermediate_size", 24576);
  HfReader rope(reader.object("rope_parameters"), fmt::format("{} rope_parameters", reader.place()));
  spec.rope_theta = number_of_two(rope, "rope_theta", reader, "rotary_emb_base", 10000);
  spec.rotary_fraction = number_of_two(rope, "partial_rotary_factor", reader, "rotary_pct", 0.25);
  rope.only_one_of("rope_type", "default", {"default"});
  reader.take_complaints_of(rope);
  if (reader.has("rope_scaling")) reader.complain("rope_scaling", "is not supported", "null");
  spec.activation = read_activation(reader, "hidden_act", kOwnActivation);
  spec.parallel_residual = reader.flag("use_parallel_residual", true);
  reader.only("attention_bias", true);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  out["num_hidden_layers"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["num_attention_heads"] = spec.heads;
  out["intermediate_size"] = spec.ffn;
  out["max_position_embeddings"] = spec.max_seq;
  out["layer_norm_eps"] = spec.norm_eps;
  out["hidden_act"] = hf_activation_of(spec);
  out["rotary_pct"] = spec.rotary_fraction;
  out["rotary_emb_base"] = spec.rope_theta;
  out["use_parallel_residual"] = spec.parallel_residual;
  out["attention_bias"] = true;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("gpt_neox.embed_in.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("gpt_neox.layers", layer);
    t.add_with_bias("input_layernorm", "attn.norm", m.hidden);
    t.add_head_by_head("attention.query_key_value.weight", "attn.qkv.weight", m);
    t.add_head_by_head("attention.query_key_value.bias", "attn.qkv.bias", m);
    t.add_with_bias("attention.dense", "attn.out", m.hidden);
    t.add_with_bias("post_attention_layernorm", "mlp.norm", m.hidden);
    t.add_with_bias("mlp.dense_h_to_4h", "mlp.up", m.ffn);
    t.add_with_bias("mlp.dense_4h_to_h", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("gpt_neox.final_layer_norm", "norm", m.hidden);
  if (!m.tied_head) t.add("embed_out.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> neox_presets() {
  ModelSpec neox{.vocab = 50432,
                 .max_seq = 2048,
                 .rotary_fraction = 0.25,
                 .activation = Activation::gelu_tanh,
                 .parallel_residual = true,
                 .bos_token = 0,
                 .eos_tokens = {0}};
  auto pythia = [&](const PresetRow& row, int64_t vocab) {
    ModelSpec common = neox;
    common.vocab = vocab;
    common.activation = kOwnActivation;
    return preset_of(row, common);
  };
  // clang-format off
  return {
      //            name            about                 layers hidden heads
      preset_of({"gpt-neox-20b", "EleutherAI GPT-NeoX-20B", 44,   6144,  64}, neox),
      pythia({   "pythia-70m",   "EleutherAI Pythia 70M",    6,    512,   8}, 50304),
      pythia({   "pythia-160m",  "EleutherAI Pythia 160M",  12,    768,  12}, 50304),
      pythia({   "pythia-410m",  "EleutherAI Pythia 410M",  24,   1024,  16}, 50304),
      pythia({   "pythia-1b",    "EleutherAI Pythia 1B",    16,   2048,   8}, 50304),
      pythia({   "pythia-1.4b",  "EleutherAI Pythia 1.4B",  24,   2048,  16}, 50304),
      pythia({   "pythia-2.8b",  "EleutherAI Pythia 2.8B",  32,   2560,  32}, 50304),
      pythia({   "pythia-6.9b",  "EleutherAI Pythia 6.9B",  32,   4096,  32}, 50432),
      pythia({   "pythia-12b",   "EleutherAI Pythia 12B",   36,   5120,  40}, 50688),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "neox",
    .about = "GPT-NeoX, Pythia",
    .published_as = {"gpt-parallel-rotary"},
    .positions = Positions::rotary,
    .options = {"rotary_fraction", "activation", "parallel_residual"},
    .defaults = {.rotary_fraction = 0.25, .activation = kOwnActivation, .parallel_residual = true, .tied_head = false},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "gpt_neox.",
    .hf_types = {{.model_type = "gpt_neox",
                  .class_name = "GPTNeoXForCausalLM",
                  .read = read,
                  .write = write,
                  .names = {{"layers", "num_hidden_layers"},
                            {"hidden", "hidden_size"},
                            {"heads", "num_attention_heads"},
                            {"head_dim", "hidden_size"},
                            {"ffn", "intermediate_size"},
                            {"vocab", "vocab_size"},
                            {"max_seq", "max_position_embeddings"},
                            {"norm_eps", "layer_norm_eps"},
                            {"init_std", "initializer_range"},
                            {"rotary_fraction", "rotary_pct"},
                            {"rope_theta", "rotary_emb_base"},
                            {"activation", "hidden_act"}},
                  .dropouts = {attention_dropout(),
                               {"hidden_dropout", {&DropoutRates::hidden, &DropoutRates::embedding}}}}},
    .presets = neox_presets,
};

}  // namespace sextant::neox
