// OLMoE: 64 narrow experts in place of every MLP, eight per token with their softmax weights as they are; q and k are
// normed over their whole width, all heads together.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::olmoe {

namespace {

using nlohmann::json;

constexpr ExpertKeys kKeys{.count = "num_experts", .normalise = "norm_topk_prob"};

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use), .qk_norm = QkNorm::whole});
}

void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  check_biases(spec, problems);
  if (spec.heads * spec.head_dim !=
      spec.hidden)  // the norms of q and k in transformers' class are as wide as the model
    problems.push_back({{"head_dim"},
                        fmt::format("{} heads of {} in a model of width {}", spec.heads, spec.head_dim, spec.hidden),
                        "head_dim = hidden / heads"});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 4096, .norm_eps = 1e-5});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  read_biases(reader, spec, MlpBias::no_key);
  if (reader.has("clip_qkv")) reader.complain("clip_qkv", "q, k and v are clipped", "null");
  spec.experts = read_experts(reader, kKeys,
                              {.count = 64, .per_token = 8, .ffn = spec.ffn, .normalise = false, .balance_loss = 0.01});
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_biases(spec, out, MlpBias::no_key);
  write_experts(spec, kKeys, out);
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("self_attn.q_norm.weight", "attn.q_norm.weight", m.heads * m.head_dim);
    t.add("self_attn.k_norm.weight", "attn.k_norm.weight", m.kv_heads * m.head_dim);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    t.add("mlp.gate.weight", "mlp.router.weight", m.experts->count);
    t.add_experts("mlp.experts", m, {});
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> olmoe_presets() {
  ModelSpec olmoe{.vocab = 50304, .max_seq = 4096, .norm_eps = 1e-5, .tied_head = false, .eos_tokens = {50279}};
  olmoe.experts = ExpertsSpec{.count = 64, .per_token = 8, .ffn = 1024, .normalise = false, .balance_loss = 0.01};
  return {preset_of({"olmoe-1b-7b", "Ai2 OLMoE 1B-7B (0924)", 16, 2048, 16, 16, 1024}, olmoe)};
}

}  // namespace

extern const ModelDef model{
    .name = "olmoe",
    .about = "OLMoE",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias", "experts.normalise"},
    .defaults = {.experts = ExpertsSpec{.count = 64, .per_token = 8, .normalise = false, .balance_loss = 0.01},
                 .tied_head = false},
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "olmoe",
                  .class_name = "OlmoeForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but(expert_names(kKeys)),
                  .aliases = {{"num_local_experts", "num_experts"}},
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{1}}},
    .presets = olmoe_presets,
};

}  // namespace sextant::olmoe
