// OPT: GPT-2 with ReLU, and two rows of the table of positions that no position has. OPT-350M has its norms behind each
// half, and an embedding narrower than its blocks.
#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::opt {

namespace {

using nlohmann::json;

constexpr int64_t kUnusedPositions = 2;
constexpr Activation kOwnActivation = Activation::relu;

bool has_final_norm(const ModelSpec& m) {
  return m.norm_placement == NormPlacement::pre;
}

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh,
                 {.norm = NormKind::layer,
                  .order = m.norm_placement == NormPlacement::post ? BlockOrder::post_norm : BlockOrder::pre_norm,
                  .final_norm = has_final_norm(m),
                  .learned_positions = kUnusedPositions,
                  .qkv_bias = Bias::added,
                  .out_bias = Bias::added,
                  .mlp = MlpKind::plain,
                  .activation = op_of(activation_of(m)),
                  .mlp_bias = Bias::added});
}

NormPlacement read_norm_placement(HfReader& reader) {
  bool is_final_removed = reader.flag("_remove_final_layer_norm", false);
  if (!reader.flag("do_layer_norm_before", true)) return NormPlacement::post;  // which has none to remove
  return is_final_removed ? NormPlacement::pre_without_final : NormPlacement::pre;
}

ModelSpec read(HfReader& reader) {
  ModelSpec spec{.layers = reader.integer("num_hidden_layers"),
                 .hidden = reader.integer("hidden_size"),
                 .heads = reader.integer("num_attention_heads"),
                 .vocab = reader.integer("vocab_size"),
                 .max_seq = reader.integer("max_position_embeddings", 2048),
                 .norm_eps = 1e-5,
                 .tied_head = reader.flag("tie_word_embeddings", true),
                 .init_std = reader.number("init_std", 0.02)};
  derive_sizes(spec);
  spec.ffn = reader.integer("ffn_dim", 3072);
  spec.activation = read_activation(reader, "activation_function", kOwnActivation);
  spec.norm_placement = read_norm_placement(reader);
  int64_t width = reader.integer("word_embed_proj_dim", spec.hidden);
  if (width < 1) reader.complain("word_embed_proj_dim", fmt::format("got {}", width), "an integer of at least 1");
  if (width != spec.hidden) spec.embedding_width = width;
  reader.only("enable_bias", true);
  reader.only("layer_norm_elementwise_affine", true);
  return spec;
}

void write(const ModelSpec& spec, json& out) {
  out["num_hidden_layers"] = spec.layers;
  out["hidden_size"] = spec.hidden;
  out["word_embed_proj_dim"] = embedding_width_of(spec);
  out["num_attention_heads"] = spec.heads;
  out["ffn_dim"] = spec.ffn;
  out["max_position_embeddings"] = spec.max_seq;
  out["activation_function"] = hf_activation_of(spec);
  out["do_layer_norm_before"] = spec.norm_placement != NormPlacement::post;
  out["_remove_final_layer_norm"] = spec.norm_placement == NormPlacement::pre_without_final;
  out["init_std"] = spec.init_std;
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.begin("model.decoder.", "");
  t.add("embed_tokens.weight", "embed.weight", m.vocab);
  if (m.embedding_width > 0) {
    t.add("project_in.weight", "project_in.weight", m.hidden);
    t.add("project_out.weight", "project_out.weight", m.embedding_width);
  }
  t.add("embed_positions.weight", "positions.weight", m.max_seq + kUnusedPositions);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.decoder.layers", layer);
    t.add_with_bias("self_attn_layer_norm", "attn.norm", m.hidden);
    int64_t part = 0;
    for (const char* name : {"q", "k", "v"}) {
      for (const char* what : {"weight", "bias"})
        t.add(fmt::format("self_attn.{}_proj.{}", name, what), fmt::format("attn.qkv.{}", what), part * m.hidden,
              m.hidden);
      ++part;
    }
    t.add_with_bias("self_attn.out_proj", "attn.out", m.hidden);
    t.add_with_bias("final_layer_norm", "mlp.norm", m.hidden);
    t.add_with_bias("fc1", "mlp.up", m.ffn);
    t.add_with_bias("fc2", "mlp.down", m.hidden);
  }
  t.begin("", "");
  if (has_final_norm(m)) t.add_with_bias("model.decoder.final_layer_norm", "norm", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

std::vector<Preset> opt_presets() {
  ModelSpec opt{.vocab = 50272,
                .max_seq = 2048,
                .activation = kOwnActivation,
                .tied_head = true,
                .bos_token = 2,
                .eos_tokens = {2}};
  ModelSpec opt_350m = opt;
  opt_350m.norm_placement = NormPlacement::post;
  opt_350m.embedding_width = 512;
  // clang-format off
  return {
      //            name        about      layers hidden heads
      preset_of({"opt-125m", "Meta OPT 125M",  12,    768,  12}, opt),
      preset_of({"opt-350m", "Meta OPT 350M",  24,   1024,  16}, opt_350m),
      preset_of({"opt-1.3b", "Meta OPT 1.3B",  24,   2048,  32}, opt),
      preset_of({"opt-2.7b", "Meta OPT 2.7B",  32,   2560,  32}, opt),
      preset_of({"opt-6.7b", "Meta OPT 6.7B",  32,   4096,  32}, opt),
      preset_of({"opt-13b",  "Meta OPT 13B",   40,   5120,  40}, opt),
      preset_of({"opt-30b",  "Meta OPT 30B",   48,   7168,  56}, opt),
      preset_of({"opt-66b",  "Meta OPT 66B",   64,   9216,  72}, opt),
      preset_of({"opt-175b", "Meta OPT 175B",  96,  12288,  96}, opt),
  };
  // clang-format on
}

}  // namespace

extern const ModelDef model{
    .name = "opt",
    .about = "OPT",
    .positions = Positions::learned,
    .free_eps = false,
    .options = {"activation", "norm_placement", "embedding_width"},
    .defaults = {.activation = kOwnActivation, .tied_head = true},
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {{.model_type = "opt",
                  .class_name = "OPTForCausalLM",
                  .read = read,
                  .write = write,
                  .names = {{"layers", "num_hidden_layers"},
                            {"hidden", "hidden_size"},
                            {"heads", "num_attention_heads"},
                            {"head_dim", "hidden_size"},
                            {"ffn", "ffn_dim"},
                            {"vocab", "vocab_size"},
                            {"max_seq", "max_position_embeddings"},
                            {"activation", "activation_function"},
                            {"norm_placement", "do_layer_norm_before"},
                            {"embedding_width", "word_embed_proj_dim"}},
                  .dropouts = {attention_dropout(), {"dropout", {&DropoutRates::hidden}, 0.1}, {"layerdrop", {}}},
                  .padding = HfPadding{1}}},
    .presets = opt_presets,
};

}  // namespace sextant::opt
