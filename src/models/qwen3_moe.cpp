// Qwen 3 with experts: Qwen 3 (norms of the heads of q and k) with many narrow experts, eight per token; some layers
// may keep an MLP.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::qwen3_moe {

namespace {

using nlohmann::json;

constexpr ExpertKeys kKeys{.count = "num_experts",
                           .width = "moe_intermediate_size",
                           .normalise = "norm_topk_prob",
                           .every = "decoder_sparse_step",
                           .dense_layers = "mlp_only_layers"};

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use), .qk_norm = QkNorm::heads});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 32768, .kv_heads = 4});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  read_biases(reader, spec, MlpBias::no_key);
  if (reader.flag("use_sliding_window", false)) spec.window = reader.integer("sliding_window", 4096);
  spec.experts = read_experts(reader, kKeys,
                              {.count = 128, .per_token = 8, .ffn = 768, .normalise = false, .balance_loss = 0.001});
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_biases(spec, out, MlpBias::no_key);
  out["use_sliding_window"] = spec.window > 0;
  if (spec.window > 0) out["sliding_window"] = spec.window;
  write_experts(spec, kKeys, out);
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    t.add("self_attn.q_norm.weight", "attn.q_norm.weight", m.head_dim);
    t.add("self_attn.k_norm.weight", "attn.k_norm.weight", m.head_dim);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    if (!layer_has_experts(m, layer)) {
      t.add_gated_mlp(m);
      continue;
    }
    t.add("mlp.gate.weight", "mlp.router.weight", m.experts->count);
    t.add_experts("mlp.experts", m, {});
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> qwen3_moe_presets() {
  auto qwen3 = [](PresetRow row, int64_t expert_ffn) {
    row.head_dim = 128;
    return preset_of(
        row,
        {.vocab = 151936,
         .max_seq = 40960,
         .norm_eps = 1e-6,
         .rope_theta = 1e6,
         .experts =
             ExpertsSpec{.count = 128, .per_token = 8, .ffn = expert_ffn, .normalise = true, .balance_loss = 0.001},
         .tied_head = false,
         .bos_token = 151643,
         .eos_tokens = {151645}});
  };
  // clang-format off
  return {
      //        name               about                   layers hidden heads kv_heads ffn   expert
      qwen3({"qwen3-30b-a3b",   "Alibaba Qwen3 30B-A3B",     48,  2048,  32,  4,  6144},  768),
      qwen3({"qwen3-235b-a22b", "Alibaba Qwen3 235B-A22B",   94,  4096,  64,  4, 12288}, 1536),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "qwen3_moe",
    .about = "Qwen 3 with experts",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias", "window", "experts.ffn", "experts.normalise", "experts.every"},
    .defaults = {.experts = ExpertsSpec{.count = 128, .per_token = 8, .balance_loss = 0.001}, .tied_head = false},
    .check = check_biases,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "qwen3_moe",
                  .class_name = "Qwen3MoeForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but(expert_names(kKeys)),
                  .aliases = {{"num_local_experts", "num_experts"}},
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = qwen3_moe_presets,
};

}  // namespace sextant::qwen3_moe
