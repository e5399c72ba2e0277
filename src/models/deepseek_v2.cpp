// DeepSeek-V2: latent attention, a first layer with an MLP, then experts beside shared ones that every token goes
// through. A router scores by softmax and may choose within the best groups only, by the best score of each.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/deepseek.h"
#include "models/hf_common.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::deepseek_v2 {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  Rope rope = rope_of(m, use);
  rope.interleaved = true;
  return decoder(m, use, mesh, {.rope = rope});
}

void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  check_deepseek(spec, problems);
  if (spec.hidden % spec.heads != 0)  // which the config class of transformers refuses, whatever the head_dim
    problems.push_back({{"heads", "hidden"},
                        fmt::format("heads {} does not divide hidden {}", spec.heads, spec.hidden),
                        fmt::format("a divisor of {}", spec.hidden)});
  if (spec.latent && spec.latent->kv_rank % 2 != 0)  // transformers reads what stands behind it as complex numbers
    problems.push_back({{"latent.kv_rank"}, fmt::format("got {}", spec.latent->kv_rank), "an even number"});
  if (spec.experts && spec.experts->normalise)
    problems.push_back(
        {{"experts.normalise"}, "deepseek_v2 takes the weights of a token's experts as they are", "false"});
  if (spec.experts && spec.experts->group_top != 1)
    problems.push_back({{"experts.group_top"},
                        fmt::format("got {}", spec.experts->group_top),
                        "1: deepseek_v2 judges a group by its best expert"});
}

void read_groups(HfReader& reader, ExpertsSpec& experts) {
  reader.only_one_of("topk_method", "greedy", {"greedy", "group_limited_greedy"});
  if (reader.text("topk_method", "greedy") != "group_limited_greedy") return;
  experts.groups = reader.integer("n_group");
  experts.keep_groups = reader.integer("topk_group");
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 2048, .norm_eps = 1e-6});
  read_latent(reader, spec);
  read_rope(reader, spec, RopePart::whole);
  read_score_factor(reader, spec);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  reader.only_one_of("scoring_func", "softmax", {"softmax"});
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  reader.only("norm_topk_prob", false);  // transformers never divides by the sum
  spec.experts = read_deepseek_experts(
      reader, {.count = 64, .per_token = 6, .ffn = 1407, .normalise = false, .shared_ffn = 2 * 1407});
  spec.experts->scale = reader.number("routed_scaling_factor", 1);
  read_groups(reader, *spec.experts);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_latent(spec, out);
  write_deepseek_experts(spec, out);
  write_groups_and_scale(spec, out);
  out["topk_method"] = spec.experts->groups > 1 ? "group_limited_greedy" : "greedy";
  out["scoring_func"] = "softmax";
  out["norm_topk_prob"] = false;
}

std::vector<Preset> deepseek_v2_presets() {
  auto v2 = [](PresetRow row, const LatentSpec& latent, const ExpertsSpec& experts) {
    row.head_dim = 192;
    return preset_of(
        row,
        {.vocab = 102400,
         .max_seq = 163840,
         .norm_eps = 1e-6,
         .rope_scaling =
             RopeScaling{.type = RopeType::yarn, .factor = 40, .original_max_positions = 4096, .mscale_all_dim = 0.707},
         .latent = latent,
         .experts = experts,
         .tied_head = false,
         .bos_token = 100000,
         .eos_tokens = {100001}});
  };
  ExpertsSpec small{
      .count = 64, .per_token = 6, .ffn = 1408, .normalise = false, .dense_first = 1, .shared_ffn = 2 * 1408};
  ExpertsSpec large{.count = 160,
                    .per_token = 6,
                    .ffn = 1536,
                    .normalise = false,
                    .dense_first = 1,
                    .shared_ffn = 2 * 1536,
                    .groups = 8,
                    .keep_groups = 3,
                    .scale = 16};
  return {v2({"deepseek-v2-lite", "DeepSeek V2 Lite", 27, 2048, 16, 16, 10944}, {.q_rank = 0}, small),
          v2({"deepseek-v2", "DeepSeek V2", 60, 5120, 128, 128, 12288}, {}, large),
          v2({"deepseek-v2.5", "DeepSeek V2.5", 60, 5120, 128, 128, 12288}, {}, large),
          v2({"deepseek-coder-v2-lite", "DeepSeek Coder V2 Lite", 27, 2048, 16, 16, 10944}, {.q_rank = 0}, small),
          v2({"deepseek-coder-v2", "DeepSeek Coder V2", 60, 5120, 128, 128, 12288}, {}, large)};
}

}  // namespace

extern const ModelDef model{
    .name = "deepseek_v2",
    .about = "DeepSeek V2",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "rope_scaling.mscale_all_dim", "latent", "experts.ffn", "experts.normalise",
                "experts.dense_first", "experts.shared_ffn", "experts.groups", "experts.scale"},
    .defaults = {.head_dim = 192,
                 .latent = LatentSpec{},
                 .experts = ExpertsSpec{.count = 64, .per_token = 6, .normalise = false, .dense_first = 1},
                 .tied_head = false},
    .check = check,
    .build = build,
    .tensors = deepseek_tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "deepseek_v2",
                  .class_name = "DeepseekV2ForCausalLM",
                  .read = read,
                  .write = write,
                  .names = deepseek_names(),
                  .aliases = {{"num_experts", "n_routed_experts"}},
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = deepseek_v2_presets,
};

}  // namespace sextant::deepseek_v2
