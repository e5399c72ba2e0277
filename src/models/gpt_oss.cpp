// gpt-oss: experts with biases and a clamped SwiGLU in place of every MLP, chosen by logits and weighted by the softmax
// of the chosen; attention with a sink for each head, in every other layer within a window, with biases, and RoPE
// stretched by yarn.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::gpt_oss {

namespace {

using nlohmann::json;

constexpr ExpertKeys kKeys{.count = "num_local_experts"};

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.rope = rope_of(m, use),
                  .sinks = true,
                  .routing_weights = RoutingWeights::of_chosen,
                  .router_bias = Bias::added,
                  .expert_bias = Bias::added});
}

// The RoPE scaling that transformers uses where a file sets none.
RopeScaling default_scaling() {
  RopeScaling yarn{.type = RopeType::yarn, .factor = 32, .original_max_positions = 4096, .truncate = false};
  yarn.attention_factor = default_attention_factor(yarn);
  return yarn;
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec =
      read_common(reader, {.max_seq = 131072, .kv_heads = 8, .head_dim = 64, .norm_eps = 1e-5, .rope_theta = 150000});
  read_rope(reader, spec, RopePart::whole);
  if (!reader.has_entries("rope_parameters") && !reader.has_entries("rope_scaling"))
    spec.rope_scaling = default_scaling();
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  spec.qkv_bias = spec.out_bias = reader.flag("attention_bias", true);
  spec.window = read_window(reader, 128);
  spec.full_attention_every = 2;
  if (reader.has("layer_types")) read_layer_types(reader, spec);
  spec.experts = read_experts(reader, kKeys, {.count = 128, .per_token = 4, .ffn = spec.ffn, .balance_loss = 0.001});
  spec.experts->swiglu_limit = reader.number("swiglu_limit", 7);
  spec.experts->swiglu_alpha = reader.number("swiglu_alpha", 1.702);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  // Where a file says nothing, transformers takes yarn.
  if (!spec.rope_scaling) out["rope_scaling"] = {{"rope_type", "default"}};
  write_biases(spec, out, MlpBias::no_key);
  out["sliding_window"] = spec.window;
  out["layer_types"] = layer_types_of(spec);
  write_experts(spec, kKeys, out);
  out["swiglu_limit"] = spec.experts->swiglu_limit;
  out["swiglu_alpha"] = spec.experts->swiglu_alpha;
}

// Of every expert one after the other, below mlp.experts: a matrix of [hidden, rows] in a stack, and a bias. Rows of
// gate_up_proj are pairs of gate and up, as ours are.
void add_expert_linear(HfTensors& t, std::string_view hf, std::string_view own, int64_t rows, int64_t experts) {
  for (std::string_view part : {"weight", "bias"})
    for (int64_t e = 0; e < experts; ++e) {
      t.add(fmt::format("mlp.experts.{}{}", hf, part == "bias" ? "_bias" : ""),
            fmt::format("mlp.experts.{}.{}", own, part), e * rows, rows);
      t.last().order = HfTensor::Order::transposed;
      t.last().slice = e, t.last().slices = experts;
    }
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("self_attn.sinks", "attn.sinks", m.heads);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    t.add_with_bias("mlp.router", "mlp.router", m.experts->count);
    add_expert_linear(t, "gate_up_proj", "gate_up", 2 * m.experts->ffn, m.experts->count);
    add_expert_linear(t, "down_proj", "down", m.hidden, m.experts->count);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  check_biases(spec, problems);
  if (spec.window == 0)
    problems.push_back(
        {{"window"}, "gpt_oss has layers with a window, and its width is not given", "a number above 0"});
  if (spec.experts && !(spec.experts->swiglu_limit > 0))
    problems.push_back(
        {{"experts.swiglu_limit"}, fmt::format("got {}", spec.experts->swiglu_limit), "a number above 0"});
}

std::vector<Preset> gpt_oss_presets() {
  auto gpt_oss = [](PresetRow row, int64_t experts) {
    row.head_dim = 64;
    return preset_of(row, {.vocab = 201088,
                           .max_seq = 131072,
                           .norm_eps = 1e-5,
                           .rope_theta = 150000,
                           .rope_scaling = default_scaling(),
                           .qkv_bias = true,
                           .out_bias = true,
                           .window = 128,
                           .full_attention_every = 2,
                           .experts = ExpertsSpec{.count = experts,
                                                  .per_token = 4,
                                                  .ffn = row.ffn,
                                                  .balance_loss = 0.9,  // as released
                                                  .swiglu_limit = 7},
                           .tied_head = false,
                           .eos_tokens = {200002}});
  };
  return {gpt_oss({"gpt-oss-20b", "OpenAI gpt-oss 20B", 24, 2880, 64, 8, 2880}, 32),
          gpt_oss({"gpt-oss-120b", "OpenAI gpt-oss 120B", 36, 2880, 64, 8, 2880}, 128)};
}

}  // namespace

extern const ModelDef model{
    .name = "gpt_oss",
    .about = "gpt-oss",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias", "window", "full_attention_first", "full_attention_every",
                "experts.swiglu_limit"},
    .defaults = {.qkv_bias = true,
                 .out_bias = true,
                 .window = 128,
                 .full_attention_every = 2,
                 .experts = ExpertsSpec{.count = 32, .per_token = 4, .balance_loss = 0.001, .swiglu_limit = 7},
                 .tied_head = false},
    .ffn_of = [](int64_t hidden) { return hidden; },
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "gpt_oss",
                  .class_name = "GptOssForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but(expert_names(kKeys)),
                  .aliases = {{"num_experts", "num_local_experts"}},
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{},
                  .mxfp4_experts = true}},
    .presets = gpt_oss_presets,
};

}  // namespace sextant::gpt_oss
