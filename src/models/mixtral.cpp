// Mixtral: Llama with experts in place of every MLP, of which each token goes through two; the weights of the chosen
// are made to sum to 1.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_experts.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::mixtral {

namespace {

using nlohmann::json;

constexpr ExpertKeys kKeys{.count = "num_local_experts"};

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use)});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 131072, .kv_heads = 8, .norm_eps = 1e-5, .rope_theta = 1e6});
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  spec.window = read_window(reader, 0);
  spec.experts = read_experts(reader, kKeys, {.count = 8, .per_token = 2, .ffn = spec.ffn, .balance_loss = 0.001});
  if (double noise = reader.number("router_jitter_noise", 0); noise != 0)
    reader.complain("router_jitter_noise", fmt::format("{}: noise in front of the router is not implemented", noise),
                    "0");
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["sliding_window"] = spec.window > 0 ? json(spec.window) : json();
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
    t.add("block_sparse_moe.gate.weight", "mlp.router.weight", m.experts->count);
    t.stacked_as("mlp.gate.weight");
    t.add_experts("block_sparse_moe.experts", m, {.gate = "w1", .up = "w3", .down = "w2"});
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> mixtral_presets() {
  auto mixtral = [](const PresetRow& row, int64_t vocab, int64_t max_seq, double balance) {
    return preset_of(row, {.vocab = vocab,
                           .max_seq = max_seq,
                           .norm_eps = 1e-5,
                           .rope_theta = 1e6,
                           .experts = ExpertsSpec{.count = 8, .per_token = 2, .ffn = row.ffn, .balance_loss = balance},
                           .tied_head = false,
                           .bos_token = 1,
                           .eos_tokens = {2}});
  };
  // clang-format off
  return {
      //            name             about                    layers hidden heads kv_heads ffn     vocab  max_seq balance
      mixtral({"mixtral-8x7b",     "Mistral Mixtral 8x7B",       32,  4096,  32,  8, 14336}, 32000, 32768, 0.02),
      mixtral({"mixtral-8x22b",    "Mistral Mixtral 8x22B v0.1", 56,  6144,  48,  8, 16384}, 32000, 65536, 0.001),
      mixtral({"mixtral-8x22b-v0.3", "Mistral Mixtral 8x22B v0.3", 56, 6144, 48,  8, 16384}, 32768, 65536, 0.001),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "mixtral",
    .about = "Mixtral",
    .positions = Positions::rotary,
    .free_heads = true,
    .has_experts = true,
    .options = {"rope_scaling", "window"},
    .defaults = {.experts = ExpertsSpec{.balance_loss = 0.001}, .tied_head = false},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "mixtral",
                  .class_name = "MixtralForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names_but(expert_names(kKeys)),
                  .aliases = {{"num_experts", "num_local_experts"}},
                  .dropouts = {attention_dropout()},
                  .padding = HfPadding{}}},
    .presets = mixtral_presets,
};

}  // namespace sextant::mixtral
