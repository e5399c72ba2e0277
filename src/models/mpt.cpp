// MPT: ALiBi instead of positions, GELU by erf, and no bias anywhere, not in norms either; the head tied to the
// embedding.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::mpt {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer_without_bias,
                  .alibi = Alibi::added,
                  .mlp = MlpKind::plain,
                  .activation = &ops::gelu_erf});
}

void read_attention(HfReader& reader) {
  HfReader attention(reader.object("attn_config"), fmt::format("{} attn_config", reader.place()));
  attention.only_one_of("attn_type", "multihead_attention", {"multihead_attention"});
  attention.only("alibi", true);
  attention.only("qk_ln", false);
  attention.only("prefix_lm", false);
  attention.only("attn_uses_sequence_id", false);
  for (std::string_view key : {"clip_qkv", "softmax_scale"})
    if (attention.has(key)) attention.complain(key, "is not supported", "null");
  if (double most = attention.number("alibi_bias_max", 8); most != 8)
    attention.complain("alibi_bias_max", fmt::format("{} is not supported", most), "8");
  reader.take_complaints_of(attention);
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec{.layers = reader.integer("n_layers"),
                 .hidden = reader.integer("d_model"),
                 .heads = reader.integer("n_heads"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_seq_len", 2048),
                 .norm_eps = reader.number("layer_norm_epsilon", 1e-5),
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("initializer_range", 0.02)};
  derive_sizes(spec);
  if (int64_t ratio = reader.integer("expansion_ratio", 4); ratio != 4)
    reader.complain("expansion_ratio", fmt::format("{} is not supported", ratio), "4");
  reader.only("no_bias", true);
  if (reader.has("logit_scale")) reader.complain("logit_scale", "is not supported", "null");
  read_attention(reader);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  out["n_layers"] = spec.layers;
  out["d_model"] = spec.hidden;
  out["n_heads"] = spec.heads;
  out["expansion_ratio"] = 4;
  out["max_seq_len"] = spec.max_seq;
  out["layer_norm_epsilon"] = spec.norm_eps;
  out["no_bias"] = true;
  out["learned_pos_emb"] = false;
  out["attn_config"] = {{"alibi", true}, {"alibi_bias_max", 8}, {"attn_type", "multihead_attention"}};
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("transformer.wte.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("transformer.blocks", layer);
    t.add("norm_1.weight", "attn.norm.weight", m.hidden);
    t.add("attn.Wqkv.weight", "attn.qkv.weight", 3 * m.heads * m.head_dim);
    t.add("attn.out_proj.weight", "attn.out.weight", m.hidden);
    t.add("norm_2.weight", "mlp.norm.weight", m.hidden);
    t.add("ffn.up_proj.weight", "mlp.up.weight", m.ffn);
    t.add("ffn.down_proj.weight", "mlp.down.weight", m.hidden);
  }
  t.begin("", "");
  t.add("transformer.norm_f.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> mpt_presets() {
  ModelSpec foundry{.vocab = 50368, .max_seq = 2048, .tied_head = true, .eos_tokens = {0}};  // of the training code
  ModelSpec released = foundry;
  released.vocab = 50432;
  ModelSpec sees_further = released;
  sees_further.max_seq = 8192;
  // clang-format off
  return {
      //            name        about              layers hidden heads
      preset_of({"mpt-125m", "llm-foundry MPT 125M", 12,    768,  12}, foundry),
      preset_of({"mpt-350m", "llm-foundry MPT 350M", 24,   1024,  16}, foundry),
      preset_of({"mpt-760m", "llm-foundry MPT 760M", 24,   1536,  12}, foundry),
      preset_of({"mpt-1b",   "llm-foundry MPT 1B",   24,   2048,  16}, foundry),
      preset_of({"mpt-3b",   "llm-foundry MPT 3B",   32,   2560,  20}, foundry),
      preset_of({"mpt-7b",   "MosaicML MPT 7B",      32,   4096,  32}, released),
      preset_of({"mpt-13b",  "llm-foundry MPT 13B",  40,   5120,  40}, foundry),
      preset_of({"mpt-30b",  "MosaicML MPT 30B",     48,   7168,  64}, sees_further),
      preset_of({"mpt-70b",  "llm-foundry MPT 70B",  80,   8192,  64}, foundry),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "mpt",
    .about = "MPT",
    .published_as = {"mpt"},
    .positions = Positions::alibi,
    .free_ffn = false,
    .defaults = {.tied_head = true},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "transformer.",
    .hf_types = {{.model_type = "mpt",
                  .class_name = "MptForCausalLM",
                  .read = read,
                  .write = write,
                  .names = {{"layers", "n_layers"},
                            {"hidden", "d_model"},
                            {"heads", "n_heads"},
                            {"head_dim", "d_model"},
                            {"vocab", "vocab_size"},
                            {"max_seq", "max_seq_len"},
                            {"norm_eps", "layer_norm_epsilon"},
                            {"init_std", "initializer_range"}},
                  .aliases = {{"hidden_size", "d_model"},
                              {"num_attention_heads", "n_heads"},
                              {"num_hidden_layers", "n_layers"}},
                  // transformers takes an integer: no rate but 0
                  .dropouts = {{"attn_pdrop", {}, 0, "attn_config"}}}},
    .presets = mpt_presets,
};

}  // namespace sextant::mpt
