// GPT-2 and GPT-3: learned positions, LayerNorm before each half of a block, GELU, biases everywhere, the head tied to
// the embedding. (GPT-3's layers that see a band of tokens only are not there: every layer sees all.)
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::gpt2 {

namespace {

using nlohmann::json;

constexpr Activation kOwnActivation = Activation::gelu_tanh;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer,
                  .learned_positions = 0,
                  .qkv_bias = Bias::added,
                  .out_bias = Bias::added,
                  .mlp = MlpKind::plain,
                  .activation = op_of(activation_of(m)),
                  .mlp_bias = Bias::added});
}

// Refuses settings that could not be saved: Hugging Face's GPT-2 scales scores by 1/sqrt(head_dim) or not at all.
void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (spec.attention_multiplier != 0 && spec.attention_multiplier != 1)
    problems.push_back(
        {{"attention_multiplier"}, fmt::format("got {}", spec.attention_multiplier), "0 or 1 with gpt2"});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec{.layers = reader.integer("n_layer"),
                 .hidden = reader.integer("n_embd"),
                 .heads = reader.integer("n_head"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("n_positions", 1024),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  spec.ffn = reader.integer("n_inner", spec.ffn);
  spec.activation = read_activation(reader, "activation_function", kOwnActivation);
  if (!reader.flag("scale_attn_weights", true)) spec.attention_multiplier = 1;
  spec.inverse_layer_scaling = reader.flag("scale_attn_by_inverse_layer_idx", false);
  reader.only("add_cross_attention", false);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  out["n_layer"] = spec.layers;
  out["n_embd"] = spec.hidden;
  out["n_head"] = spec.heads;
  out["n_inner"] = spec.ffn;
  out["n_positions"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["activation_function"] = hf_activation_of(spec);
  out["scale_attn_weights"] = spec.attention_multiplier == 0;
  out["scale_attn_by_inverse_layer_idx"] = spec.inverse_layer_scaling;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  auto transposed = [&](const std::string& hf, const std::string& own, int64_t rows) {
    t.add(hf + ".weight", own + ".weight", rows);
    t.last().order = HfTensor::Order::transposed;
    t.add(hf + ".bias", own + ".bias", rows);
  };
  t.add("transformer.wte.weight", "embed.weight", m.vocab);
  t.add("transformer.wpe.weight", "positions.weight", m.max_seq);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("transformer.h", layer);
    t.add_with_bias("ln_1", "attn.norm", m.hidden);
    transposed("attn.c_attn", "attn.qkv", 3 * m.heads * m.head_dim);
    transposed("attn.c_proj", "attn.out", m.hidden);
    t.add_with_bias("ln_2", "mlp.norm", m.hidden);
    transposed("mlp.c_fc", "mlp.up", m.ffn);
    transposed("mlp.c_proj", "mlp.down", m.hidden);
  }
  t.begin("", "");
  t.add_with_bias("transformer.ln_f", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

// Two rows of GPT-3's table cannot be as printed: 24 heads of 128 for 1.3B are wider than its 2048, and 13B's width of
// 5140 is not 40 heads of 128. 16 heads and 5120 are what everybody takes.
std::vector<Preset> gpt2_presets() {
  ModelSpec gpt2{.vocab = 50257,
                 .max_seq = 1024,
                 .activation = kOwnActivation,
                 .tied_head = true,
                 .bos_token = 50256,
                 .eos_tokens = {50256}};
  ModelSpec gpt3 = gpt2;
  gpt3.max_seq = 2048;
  ModelSpec mt_nlg = gpt3;
  mt_nlg.vocab = 51200;  // GPT-2's tokens, padded for tensor parallelism
  // clang-format off
  return {
      //            name            about                  layers hidden heads
      preset_of({"gpt2",         "OpenAI GPT-2 124M",        12,    768,  12}, gpt2),
      preset_of({"gpt2-medium",  "OpenAI GPT-2 355M",        24,   1024,  16}, gpt2),
      preset_of({"gpt2-large",   "OpenAI GPT-2 774M",        36,   1280,  20}, gpt2),
      preset_of({"gpt2-xl",      "OpenAI GPT-2 1.6B",        48,   1600,  25}, gpt2),
      preset_of({"gpt3-125m",    "OpenAI GPT-3 Small",       12,    768,  12}, gpt3),
      preset_of({"gpt3-350m",    "OpenAI GPT-3 Medium",      24,   1024,  16}, gpt3),
      preset_of({"gpt3-760m",    "OpenAI GPT-3 Large",       24,   1536,  16}, gpt3),
      preset_of({"gpt3-1.3b",    "OpenAI GPT-3 XL",          24,   2048,  16}, gpt3),
      preset_of({"gpt3-2.7b",    "OpenAI GPT-3 2.7B",        32,   2560,  32}, gpt3),
      preset_of({"gpt3-6.7b",    "OpenAI GPT-3 6.7B",        32,   4096,  32}, gpt3),
      preset_of({"gpt3-13b",     "OpenAI GPT-3 13B",         40,   5120,  40}, gpt3),
      preset_of({"gpt3-175b",    "OpenAI GPT-3 175B",        96,  12288,  96}, gpt3),
      preset_of({"mt-nlg-530b",  "Megatron-Turing NLG 530B", 105, 20480, 128}, mt_nlg),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "gpt2",
    .about = "GPT-2, GPT-3",
    .published_as = {"gpt"},
    .positions = Positions::learned,
    .options = {"activation", "attention_multiplier", "inverse_layer_scaling"},
    .defaults = {.activation = kOwnActivation, .tied_head = true},
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "transformer.",
    .hf_types = {{.model_type = "gpt2",
                  .class_name = "GPT2LMHeadModel",
                  .read = read,
                  .write = write,
                  .names = {{"layers", "n_layer"},
                            {"hidden", "n_embd"},
                            {"heads", "n_head"},
                            {"kv_heads", "n_head"},
                            {"head_dim", "n_embd"},
                            {"ffn", "n_inner"},
                            {"vocab", "vocab_size"},
                            {"max_seq", "n_positions"},
                            {"norm_eps", "layer_norm_epsilon"},
                            {"init_std", "initializer_range"},
                            {"activation", "activation_function"}},
                  .aliases = {{"hidden_size", "n_embd"},
                              {"max_position_embeddings", "n_positions"},
                              {"num_attention_heads", "n_head"},
                              {"num_hidden_layers", "n_layer"}},
                  .dropouts = {{"attn_pdrop", {&DropoutRates::attention}, 0.1},
                               {"embd_pdrop", {&DropoutRates::embedding}, 0.1},
                               {"resid_pdrop", {&DropoutRates::hidden}, 0.1}}}},
    .presets = gpt2_presets,
};

}  // namespace sextant::gpt2
