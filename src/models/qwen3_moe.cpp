// Qwen 3 with experts: Qwen 3 (norms of the heads of q and k) with many narrow experts, eight per token; some layers
// may keep an MLP.
#include <nlohmann/json.hpp>
#include <optional>

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
  if (reader.flag("use_sliding_window", false)) spec.window = read_window(reader, 4096);
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

struct Qwen3Experts {
  int64_t count, ffn;
  double balance_loss = 0.001;
};
// How far the model sees, and by what turns.
struct Context {
  int64_t max_seq = 40960;
  double rope_theta = 1e6;
  std::optional<int64_t> bos_token = 151643;
};

std::vector<Preset> qwen3_moe_presets() {
  auto qwen3 = [](PresetRow row, const Qwen3Experts& experts, const Context& context = {}) {
    row.head_dim = 128;
    return preset_of(row, {.vocab = 151936,
                           .max_seq = context.max_seq,
                           .norm_eps = 1e-6,
                           .rope_theta = context.rope_theta,
                           .experts = ExpertsSpec{.count = experts.count,
                                                  .per_token = 8,
                                                  .ffn = experts.ffn,
                                                  .normalise = true,
                                                  .balance_loss = experts.balance_loss},
                           .tied_head = false,
                           .bos_token = context.bos_token,
                           .eos_tokens = {151645}});
  };
  Context longer{262144, 1e7}, coder{262144, 1e7, std::nullopt};
  // clang-format off
  return {
      //        name                      about                        layers hidden heads kv_heads ffn   experts
      qwen3({"qwen3-30b-a3b",          "Alibaba Qwen3 30B-A3B",          48,  2048,  32,  4,  6144}, {128,  768}),
      qwen3({"qwen3-235b-a22b",        "Alibaba Qwen3 235B-A22B",        94,  4096,  64,  4, 12288}, {128, 1536}),
      qwen3({"qwen3-30b-a3b-2507",     "Alibaba Qwen3 30B-A3B 2507",     48,  2048,  32,  4,  6144}, {128,  768}, longer),
      qwen3({"qwen3-235b-a22b-2507",   "Alibaba Qwen3 235B-A22B 2507",   94,  4096,  64,  4, 12288}, {128, 1536}, {262144, 5e6}),
      qwen3({"qwen3-coder-30b-a3b",    "Alibaba Qwen3-Coder 30B-A3B",    48,  2048,  32,  4,  5472}, {128,  768, 0}, coder),
      qwen3({"qwen3-coder-480b-a35b",  "Alibaba Qwen3-Coder 480B-A35B",  62,  6144,  96,  8,  8192}, {160, 2560, 0}, coder),
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
