// Phi-3 and Phi-4: Llama with q, k and v in one tensor of the file, and gate
// and up in another, as we keep them; RoPE may turn a part of each head, and
// is stretched by "longrope" in the models of 128k positions.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::phi3 {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use)});
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec = read_common(reader, {.max_seq = 4096, .norm_eps = 1e-5});
  read_rope(reader, spec, RopePart::of_head);
  spec.window = read_window(reader, 0);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});
  reader.only("attention_bias", false);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["partial_rotary_factor"] = spec.rotary_fraction;
  out["original_max_position_embeddings"] =
      spec.rope_scaling ? spec.rope_scaling->original_max_positions : spec.max_seq;
  out["sliding_window"] = spec.window > 0 ? json(spec.window) : json();
}

// transformers refuses other scaling than longrope for this model type.
void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  if (!spec.rope_scaling || spec.rope_scaling->type == RopeType::longrope) return;
  problems.push_back({{"rope_scaling"},
                      fmt::format("phi3 does not scale its RoPE by {}", word_of(spec.rope_scaling->type)),
                      "no rope_scaling: Phi-3 has longrope alone, whose divisors come with a directory (model.from)"});
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add("self_attn.qkv_proj.weight", "attn.qkv.weight", (m.heads + 2 * m.kv_heads) * m.head_dim);
    t.add("self_attn.o_proj.weight", "attn.out.weight", m.hidden);
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    t.add("mlp.gate_up_proj.weight", "mlp.gate_up.weight", 2 * m.ffn);
    t.add("mlp.down_proj.weight", "mlp.down.weight", m.hidden);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> phi3_presets() {
  ModelSpec phi3{.vocab = 32064, .max_seq = 4096, .window = 2047, .bos_token = 1, .eos_tokens = {32000}};
  ModelSpec phi4{.vocab = 100352, .max_seq = 16384, .rope_theta = 250000, .bos_token = 100257, .eos_tokens = {100257}};
  // clang-format off
  return {
      //            name             about                 layers hidden heads kv_heads ffn
      preset_of({"phi-3-mini",   "Microsoft Phi-3 mini 4k",   32,  3072,  32,  32,  8192}, phi3),
      preset_of({"phi-3-medium", "Microsoft Phi-3 medium 4k", 40,  5120,  40,  10, 17920}, phi3),
      preset_of({"phi-4",        "Microsoft Phi-4",           40,  5120,  40,  10, 17920}, phi4),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "phi3",
    .about = "Phi-3, Phi-4",
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "rotary_fraction", "window"},
    .defaults = {.tied_head = false},
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "phi3",
                  .class_name = "Phi3ForCausalLM",
                  .read = read,
                  .write = write,
                  .names = common_names(),
                  .dropouts = {attention_dropout(), {"resid_pdrop", {&DropoutRates::hidden}}},
                  .padding = HfPadding{32000}}},
    .presets = phi3_presets,
};

}  // namespace sextant::phi3
