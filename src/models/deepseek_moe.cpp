// DeepSeekMoE (DeepSeek's first model with experts): attention as in Llama, a first layer with an MLP, then narrow
// experts beside shared ones that every token goes through. A router scores by softmax, and the weights of a token's
// experts need not sum to 1. transformers has no such class: released directories bring their own.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/deepseek.h"
#include "models/hf_common.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::deepseek_moe {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use)});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 2048, .norm_eps = 1e-6});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  reader.only_one_of("scoring_func", "softmax", {"softmax"});
  reader.only("attention_bias", false);
  ExpertsSpec experts{.count = reader.integer("n_routed_experts"),
                      .per_token = reader.integer("num_experts_per_tok"),
                      .ffn = 1407,
                      .shared_ffn = 1407};
  experts = read_deepseek_experts(reader, experts);
  experts.normalise = reader.flag("norm_topk_prob", false);
  spec.experts = experts;
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_deepseek_experts(spec, out);
  out["scoring_func"] = "softmax";
  out["norm_topk_prob"] = spec.experts->normalise;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    add_deepseek_mlp(t, m, layer);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> deepseek_moe_presets() {
  return {preset_of(
      {"deepseek-moe-16b", "DeepSeekMoE 16B", 28, 2048, 16, 16, 10944},
      {.vocab = 102400,
       .max_seq = 4096,
       .norm_eps = 1e-6,
       .experts =
           ExpertsSpec{
               .count = 64, .per_token = 6, .ffn = 1408, .normalise = false, .dense_first = 1, .shared_ffn = 2 * 1408},
       .tied_head = false,
       .bos_token = 100000,
       .eos_tokens = {100001}})};
}

}  // namespace

extern const ModelDef model{
    .name = "deepseek_moe",
    .about = "DeepSeekMoE",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "experts.ffn", "experts.normalise", "experts.dense_first", "experts.shared_ffn"},
    .defaults = {.experts = ExpertsSpec{.count = 64, .per_token = 6, .normalise = false, .dense_first = 1},
                 .tied_head = false},
    .check = check_deepseek,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "deepseek",
                  .class_name = "DeepseekForCausalLM",
                  .known = HfKnown::remote_code,
                  .read = read,
                  .write = write,
                  .names = deepseek_expert_names(),
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = deepseek_moe_presets,
};

}  // namespace sextant::deepseek_moe
