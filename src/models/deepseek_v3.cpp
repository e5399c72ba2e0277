// DeepSeek-V3: V2 with a router that scores by sigmoid, chooses by scores plus a bias that follows the load of experts
// (no loss balances them), within the groups whose two best are the largest in sum, and makes the weights sum to the
// scale. Further layers, each with a norm of its own, may predict more tokens than the next (multi-token prediction).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/deepseek.h"
#include "models/hf_common.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::deepseek_v3 {

namespace {

using nlohmann::json;

// Ours: how fast the bias follows the load. transformers does not train it.
constexpr const char* kBiasSpeed = "router_bias_update_speed";

// Kimi K2 is the same model under a name of its own, with a class that its directory brings along.
constexpr const char* kKimiType = "kimi_k2";

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Rope rope = rope_of(m, use);
  rope.interleaved = true;
  return decoder(m, use, mesh, {.rope = rope});
}

// The class of transformers has no others.
void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  check_deepseek(spec, problems);
  if (!spec.experts) return;
  const ExpertsSpec& experts = *spec.experts;
  if (experts.score != ExpertScore::sigmoid)
    problems.push_back({{"experts.score"}, "deepseek_v3 scores experts by sigmoid", "sigmoid"});
  if (!experts.correction_bias) problems.push_back({{"experts.correction_bias"}, "deepseek_v3 has that bias", "true"});
  if (experts.groups > 1 && experts.group_top != 2)
    problems.push_back({{"experts.group_top", "experts.groups"},
                        fmt::format("got {}", experts.group_top),
                        "2: deepseek_v3 judges a group by its two best experts"});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 4096, .norm_eps = 1e-6});
  read_latent(reader, spec);
  read_rope(reader, spec, RopePart::whole);
  read_score_factor(reader, spec);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  reader.only_one_of("scoring_func", "sigmoid", {"sigmoid"});
  reader.only_one_of("topk_method", "noaux_tc", {"noaux_tc"});
  reader.only("attention_bias", false);
  reader.only("rope_interleave", true);
  ExpertsSpec experts = read_deepseek_experts(reader, {.count = 256,
                                                       .per_token = 8,
                                                       .ffn = 2048,
                                                       .dense_first = 3,
                                                       .shared_ffn = 2048,
                                                       .score = ExpertScore::sigmoid,
                                                       .correction_bias = true,
                                                       .bias_update_speed = 0.001});
  experts.scale = reader.number("routed_scaling_factor", 2.5);
  experts.normalise = reader.flag("norm_topk_prob", true);
  experts.groups = reader.integer("n_group", 8);
  experts.keep_groups = reader.integer("topk_group", 4);
  experts.group_top = experts.groups > 1 ? 2 : 1;
  experts.bias_update_speed = reader.number(kBiasSpeed, experts.bias_update_speed);
  spec.experts = experts;
  spec.mtp_depths = reader.integer("num_nextn_predict_layers", 1);
  return spec;
}

ModelSpec read_kimi(HfReader& reader) {
  ModelSpec spec = read(reader);
  spec.hf_type = kKimiType;
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_latent(spec, out);
  write_deepseek_experts(spec, out);
  write_groups_and_scale(spec, out);
  out["topk_method"] = "noaux_tc";
  out["scoring_func"] = "sigmoid";
  out["norm_topk_prob"] = spec.experts->normalise;
  out["rope_interleave"] = true;
  out["num_nextn_predict_layers"] = spec.mtp_depths;
  out[kBiasSpeed] = spec.experts->bias_update_speed;
}

// Settings that Moonshot's models have in common: one group of experts, one layer with an MLP, another tokenizer.
ModelSpec of_moonshot(ModelSpec spec) {
  spec.vocab = 163840;
  spec.rope_theta = 50000;
  spec.experts->dense_first = 1;
  spec.experts->groups = spec.experts->keep_groups = spec.experts->group_top = 1;
  spec.bos_token = 163584;
  return spec;
}

std::vector<Preset> deepseek_v3_presets() {
  ExpertsSpec experts{.count = 256,
                      .per_token = 8,
                      .ffn = 2048,
                      .dense_first = 3,
                      .shared_ffn = 2048,
                      .score = ExpertScore::sigmoid,
                      .groups = 8,
                      .keep_groups = 4,
                      .group_top = 2,
                      .scale = 2.5,
                      .correction_bias = true,
                      .bias_update_speed = 0.001};
  ModelSpec v3{
      .vocab = 129280,
      .max_seq = 163840,
      .norm_eps = 1e-6,
      .rope_scaling =
          RopeScaling{.type = RopeType::yarn, .factor = 40, .original_max_positions = 4096, .mscale_all_dim = 1},
      .latent = LatentSpec{},
      .experts = experts,
      .tied_head = false,
      .bos_token = 0,
      .eos_tokens = {1}};
  ModelSpec kimi = of_moonshot(v3);
  kimi.hf_type = kKimiType;
  kimi.max_seq = 131072;
  kimi.rope_scaling->factor = 32;
  kimi.rope_scaling->beta_fast = 1;  // as released: as many turns as beta_slow
  kimi.experts->count = 384;
  kimi.experts->scale = 2.827;
  kimi.eos_tokens = {163585};
  ModelSpec moonlight = of_moonshot(v3);
  moonlight.max_seq = 8192;
  moonlight.norm_eps = 1e-5;
  moonlight.rope_scaling.reset();
  moonlight.latent->q_rank = 0;
  moonlight.experts->count = 64;
  moonlight.experts->per_token = 6;
  moonlight.experts->ffn = 1408;
  moonlight.experts->shared_ffn = 2 * 1408;
  moonlight.experts->scale = 2.446;
  moonlight.eos_tokens = {163586};
  PresetRow large{"deepseek-v3", "DeepSeek V3", 61, 7168, 128, 128, 18432, 192};
  auto named = [&](std::string_view name, std::string_view about) {
    large.name = name, large.about = about;
    return preset_of(large, v3);
  };
  return {named("deepseek-v3", "DeepSeek V3"), named("deepseek-v3.1", "DeepSeek V3.1"),
          named("deepseek-r1", "DeepSeek R1"),
          preset_of({"kimi-k2", "Moonshot Kimi K2", 61, 7168, 64, 64, 18432, 192}, kimi),
          preset_of({"moonlight-16b-a3b", "Moonshot Moonlight 16B-A3B", 27, 2048, 16, 16, 11264, 192}, moonlight)};
}

HfType hf_type(std::string_view model_type, HfKnown known, ModelSpec (*read_type)(HfReader&)) {
  return {.model_type = model_type,
          .class_name = "DeepseekV3ForCausalLM",
          .known = known,
          .read = read_type,
          .write = write,
          .names = deepseek_names(),
          .aliases = {{"num_local_experts", "n_routed_experts"}, {"num_mtp_layers", "num_nextn_predict_layers"}},
          .dropouts = {attention_dropout()},
          .padding = HfPadding{}};
}

}  // namespace

extern const ModelDef model{
    .name = "deepseek_v3",
    .about = "DeepSeek V3",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "rope_scaling.mscale_all_dim", "latent", "experts.ffn", "experts.normalise",
                "experts.dense_first", "experts.shared_ffn", "experts.score", "experts.groups", "experts.scale",
                "experts.correction_bias", "mtp.depths"},
    .defaults = {.head_dim = 192,
                 .latent = LatentSpec{},
                 .experts = ExpertsSpec{.count = 64,
                                        .per_token = 6,
                                        .dense_first = 1,
                                        .score = ExpertScore::sigmoid,
                                        .groups = 8,
                                        .keep_groups = 4,
                                        .group_top = 2,
                                        .scale = 2.5,
                                        .correction_bias = true,
                                        .bias_update_speed = 0.001},
                 .tied_head = false},
    .check = check,
    .build = build,
    .tensors = deepseek_tensors,
    .hf_prefix = "model.",
    .hf_types = {hf_type("deepseek_v3", HfKnown::in_transformers, read),
                 hf_type(kKimiType, HfKnown::remote_code, read_kimi)},
    .hf_type_of = [](const ModelSpec& spec) -> std::string_view {
      return spec.hf_type.empty() ? "deepseek_v3" : std::string_view(spec.hf_type);
    },
    .presets = deepseek_v3_presets,
};

}  // namespace sextant::deepseek_v3
