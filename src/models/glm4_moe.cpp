// GLM-4.5: DeepSeek-V3's experts and router behind grouped-query attention of which RoPE turns a part of each head; q,
// k and v may have biases, and heads of q and k norms.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "models/decoder.h"
#include "models/deepseek.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::glm4_moe {

namespace {

using nlohmann::json;

// Ours, as for deepseek_v3: how fast the bias follows the load.
constexpr const char* kBiasSpeed = "router_bias_update_speed";

ExpertsSpec default_experts() {
  return {.count = 128,
          .per_token = 8,
          .ffn = 1408,
          .dense_first = 1,
          .shared_ffn = 1408,
          .score = ExpertScore::sigmoid,
          .correction_bias = true,
          .bias_update_speed = 0.001};
}

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use), .qk_norm = m.qk_norm ? QkNorm::heads : QkNorm::none});
}

// The class of transformers has no others.
void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  check_deepseek(spec, problems);
  if (!spec.experts) return;
  const ExpertsSpec& experts = *spec.experts;
  if (experts.score != ExpertScore::sigmoid)
    problems.push_back({{"experts.score"}, "glm4_moe scores experts by sigmoid", "sigmoid"});
  if (!experts.correction_bias) problems.push_back({{"experts.correction_bias"}, "glm4_moe has that bias", "true"});
  if (experts.groups > 1 && experts.group_top != 2)
    problems.push_back({{"experts.group_top", "experts.groups"},
                        fmt::format("got {}", experts.group_top),
                        "2: glm4_moe judges a group by its two best experts"});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 131072, .kv_heads = 8, .norm_eps = 1e-5});
  spec.rotary_fraction = 0.5;
  read_rope(reader, spec, RopePart::of_head);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  spec.qkv_bias = reader.flag("attention_bias", false);
  spec.qk_norm = reader.flag("use_qk_norm", false);
  ExpertsSpec experts = read_deepseek_experts(reader, default_experts());
  experts.scale = reader.number("routed_scaling_factor", 1);
  experts.normalise = reader.flag("norm_topk_prob", true);
  experts.groups = reader.integer("n_group", 1);
  experts.keep_groups = reader.integer("topk_group", 1);
  experts.group_top = experts.groups > 1 ? 2 : 1;
  experts.bias_update_speed = reader.number(kBiasSpeed, experts.bias_update_speed);
  spec.experts = experts;
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["partial_rotary_factor"] = spec.rotary_fraction;
  out["attention_bias"] = spec.qkv_bias;
  out["use_qk_norm"] = spec.qk_norm;
  write_deepseek_experts(spec, out);
  write_groups_and_scale(spec, out);
  out["norm_topk_prob"] = spec.experts->normalise;
  out["num_nextn_predict_layers"] = 0;  // its modules are not read
  out[kBiasSpeed] = spec.experts->bias_update_speed;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    if (m.qk_norm) {
      t.add("self_attn.q_norm.weight", "attn.q_norm.weight", m.head_dim);
      t.add("self_attn.k_norm.weight", "attn.k_norm.weight", m.head_dim);
    }
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    add_deepseek_mlp(t, m, layer);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<HfName> names() {
  std::vector<HfName> names = deepseek_expert_names();
  names.insert(names.end(), {{"rotary_fraction", "partial_rotary_factor"},
                             {"qkv_bias", "attention_bias"},
                             {"qk_norm", "use_qk_norm"},
                             {"experts.groups", "n_group"},
                             {"experts.keep_groups", "topk_group"},
                             {"experts.group_top", "n_group"},
                             {"experts.scale", "routed_scaling_factor"}});
  return names;
}

std::vector<Preset> glm4_moe_presets() {
  auto glm = [](PresetRow row, const ExpertsSpec& experts, bool qk_norm) {
    row.head_dim = 128;
    return preset_of(row, {.vocab = 151552,
                           .max_seq = 131072,
                           .norm_eps = 1e-5,
                           .rope_theta = 1e6,
                           .rotary_fraction = 0.5,
                           .qkv_bias = true,
                           .qk_norm = qk_norm,
                           .experts = experts,
                           .tied_head = false,
                           .eos_tokens = {151329, 151336, 151338}});
  };
  ExpertsSpec air = default_experts(), large = default_experts();
  large.count = 160, large.ffn = large.shared_ffn = 1536, large.dense_first = 3, large.scale = 2.5;
  return {glm({"glm-4.5-air", "Z.ai GLM-4.5 Air", 46, 4096, 96, 8, 10944}, air, false),
          glm({"glm-4.5", "Z.ai GLM-4.5", 92, 5120, 96, 8, 12288}, large, true)};
}

}  // namespace

extern const ModelDef model{
    .name = "glm4_moe",
    .about = "GLM-4.5",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "rotary_fraction", "qkv_bias", "qk_norm", "experts.ffn", "experts.normalise",
                "experts.dense_first", "experts.shared_ffn", "experts.score", "experts.groups", "experts.scale",
                "experts.correction_bias"},
    .defaults = {.rotary_fraction = 0.5,
                 .experts = ExpertsSpec{.count = 128,
                                        .per_token = 8,
                                        .dense_first = 1,
                                        .score = ExpertScore::sigmoid,
                                        .correction_bias = true,
                                        .bias_update_speed = 0.001},
                 .tied_head = false},
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "glm4_moe",
                  .class_name = "Glm4MoeForCausalLM",
                  .read = read,
                  .write = write,
                  .names = names(),
                  .aliases = {{"num_experts", "n_routed_experts"}},
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = glm4_moe_presets,
};

}  // namespace sextant::glm4_moe
