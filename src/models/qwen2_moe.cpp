// Qwen 1.5 and 2 with experts: Qwen 2 (biases of q, k and v) with experts of which each token goes through some, and a
// shared one that every token goes through, times a gate of its own.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::qwen2_moe {

namespace {

using nlohmann::json;

constexpr ExpertKeys kKeys{.count = "num_experts",
                           .width = "moe_intermediate_size",
                           .normalise = "norm_topk_prob",
                           .every = "decoder_sparse_step",
                           .dense_layers = "mlp_only_layers",
                           .shared_width = "shared_expert_intermediate_size"};

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use), .shared_expert = SharedExpert::gated});
}

// transformers has no such model without one.
void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (spec.experts && spec.experts->shared_ffn == 0)
    problems.push_back({{"experts.shared_ffn"}, "there is no shared expert", "its width"});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 32768, .kv_heads = 16});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  spec.qkv_bias = reader.flag("qkv_bias", true);
  read_windows(reader, spec, WindowLayers::every_other_of_first);
  spec.experts = read_experts(
      reader, kKeys,
      {.count = 60, .per_token = 4, .ffn = 1408, .normalise = false, .balance_loss = 0.001, .shared_ffn = 5632});
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["qkv_bias"] = spec.qkv_bias;
  write_windows(spec, out);
  write_experts(spec, kKeys, out);
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    if (!layer_has_experts(m, layer)) {
      t.add_gated_mlp(m);
      continue;
    }
    t.add("mlp.gate.weight", "mlp.router.weight", m.experts->count);
    t.add_experts("mlp.experts", m, {});
    t.add("mlp.shared_expert.gate_proj.weight", "mlp.shared.gate_up.weight", 0, m.experts->shared_ffn);
    t.add("mlp.shared_expert.up_proj.weight", "mlp.shared.gate_up.weight", m.experts->shared_ffn,
          m.experts->shared_ffn);
    t.add("mlp.shared_expert.down_proj.weight", "mlp.shared.down.weight", m.hidden);
    t.add("mlp.shared_expert_gate.weight", "mlp.shared.gate.weight", 1);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> qwen2_moe_presets() {
  auto qwen2 = [](const PresetRow& row, const ExpertsSpec& experts, int64_t max_seq) {
    return preset_of(row, {.vocab = 151936,
                           .max_seq = max_seq,
                           .norm_eps = 1e-6,
                           .rope_theta = 1e6,
                           .qkv_bias = true,
                           .experts = experts,
                           .tied_head = false,
                           .bos_token = 151643,
                           .eos_tokens = {151643}});
  };
  ExpertsSpec small{
      .count = 60, .per_token = 4, .ffn = 1408, .normalise = false, .balance_loss = 0.001, .shared_ffn = 5632};
  ExpertsSpec large{
      .count = 64, .per_token = 8, .ffn = 2560, .normalise = false, .balance_loss = 0.001, .shared_ffn = 20480};
  return {qwen2({"qwen1.5-moe-a2.7b", "Alibaba Qwen1.5-MoE A2.7B", 24, 2048, 16, 16, 5632}, small, 8192),
          qwen2({"qwen2-57b-a14b", "Alibaba Qwen2 57B-A14B", 28, 3584, 28, 4, 18944}, large, 131072)};
}

}  // namespace

extern const ModelDef model{
    .name = "qwen2_moe",
    .about = "Qwen 1.5 and 2 with experts",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "qkv_bias", "window", "full_attention_first", "full_attention_every", "experts.ffn",
                "experts.normalise", "experts.every", "experts.shared_ffn"},
    .defaults = {.experts = ExpertsSpec{.count = 60, .per_token = 4, .normalise = false, .balance_loss = 0.001},
                 .tied_head = false},
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "qwen2_moe",
                  .class_name = "Qwen2MoeForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but(expert_names(kKeys)),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = qwen2_moe_presets,
};

}  // namespace sextant::qwen2_moe
