// Llama 1, 2 and 3, and what differs from it in a detail: Mistral 7B, Qwen 2 (biases of q, k and v) and Qwen 3 (norms
// of their heads). RMSNorm before each half of a block, rotary positions, grouped-query attention, SwiGLU, no other
// biases.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "models/decoder.h"
#include "models/hf_common.h"
#include "models/hf_tensors.h"
#include "models/model_def.h"
#include "models/presets.h"

namespace sextant::llama {

namespace {

using nlohmann::json;

Graph build(const ModelSpec& m, const Use& use, const Mesh& mesh) {
  return decoder(m, use, mesh, {.rope = rope_of(m, use), .qk_norm = m.qk_norm ? QkNorm::heads : QkNorm::none});
}

// Three matrices instead of two.
int64_t ffn_of(int64_t hidden) {
  return round_up(hidden * 8 / 3, 256);
}

// Options make it a model of another name, whatever it was before.
std::string_view type_of(const ModelSpec& spec) {
  if (spec.qk_norm) return "qwen3";
  if (spec.qkv_bias && !spec.out_bias) return "qwen2";
  if (spec.window > 0) return "mistral";
  if (spec.out_bias || spec.mlp_bias) return "llama";
  return spec.hf_type.empty() ? std::string_view("llama") : std::string_view(spec.hf_type);
}

// Refuses combinations that no model type of Hugging Face has: they could not be saved.
void check(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  std::string_view type = type_of(spec);
  if (type == "llama" && spec.hidden % spec.heads != 0)  // transformers refuses such a Llama, whatever its head_dim
    problems.push_back({{"heads", "hidden"},
                        fmt::format("heads {} does not divide hidden {}", spec.heads, spec.hidden),
                        fmt::format("a divisor of {}", spec.hidden)});
  if (spec.out_bias && !spec.qkv_bias)
    problems.push_back({{"out_bias", "qkv_bias"}, "out_bias is given without qkv_bias", "both, or qkv_bias alone"});
  if (spec.mlp_bias && type != "llama")
    problems.push_back({{"mlp_bias"},
                        fmt::format("mlp_bias is given beside what makes it {}", type),
                        "no mlp_bias, or neither qkv_bias alone, nor qk_norm, nor window"});
  if (spec.qk_norm && spec.qkv_bias && !spec.out_bias)
    problems.push_back({{"qkv_bias", "qk_norm"},
                        "qkv_bias is given beside qk_norm, without out_bias",
                        "both biases or none: Qwen 3's attention_bias"});
  if (spec.window > 0 && spec.out_bias && !spec.qk_norm)
    problems.push_back(
        {{"window", "out_bias"}, "window is given beside out_bias", "one of the two: no model type has both"});
  bool has_full_layers =
      spec.full_attention_first > 0 || spec.full_attention_every > 0 || !spec.full_attention_layers.empty();
  if (type == "mistral" && has_full_layers)
    problems.push_back({{"full_attention_first", "full_attention_every"},
                        "Mistral has the window in every layer",
                        "0, or Qwen 2's qkv_bias or Qwen 3's qk_norm"});
}

ModelSpec read_any(HfReader& reader, const HfDefaults& defaults) {
  ModelSpec spec = read_common(reader, defaults);
  read_rope(reader, spec, RopePart::whole);
  reader.only_one_of("hidden_act", "silu", {"silu", "swish"});  // two names of one function
  return spec;
}

ModelSpec read_llama(HfReader& reader) {
  ModelSpec spec = read_any(reader, {});
  read_biases(reader, spec, MlpBias::a_key);
  return spec;
}

ModelSpec read_mistral(HfReader& reader) {
  ModelSpec spec = read_any(reader, {.max_seq = 131072, .kv_heads = 8});
  spec.hf_type = "mistral";
  spec.window = read_window(reader, 4096);
  return spec;
}

ModelSpec read_qwen2(HfReader& reader) {
  ModelSpec spec = read_any(reader, {.max_seq = 32768});
  spec.qkv_bias = true;
  read_windows(reader, spec, WindowLayers::after_first);
  return spec;
}

ModelSpec read_qwen3(HfReader& reader) {
  ModelSpec spec = read_any(reader, {.max_seq = 32768, .head_dim = 128});
  spec.qk_norm = true;
  read_biases(reader, spec, MlpBias::no_key);
  read_windows(reader, spec, WindowLayers::after_first);
  return spec;
}

void write_llama(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_biases(spec, out, MlpBias::a_key);
}

void write_mistral(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  out["sliding_window"] = spec.window > 0 ? json(spec.window) : json();  // absent would mean 4096
}

void write_qwen2(const ModelSpec& spec, json& out) {
  write_common(spec, out);
  write_windows(spec, out);
}

void write_qwen3(const ModelSpec& spec, json& out) {
  write_qwen2(spec, out);
  write_biases(spec, out, MlpBias::no_key);
}

std::vector<HfTensor> tensors(const ModelSpec& m) {
  HfTensors t;
  t.add("model.embed_tokens.weight", "embed.weight", m.vocab);
  for (int layer = 0; layer < m.layers; ++layer) {
    t.begin_layer("model.layers", layer);
    t.add("input_layernorm.weight", "attn.norm.weight", m.hidden);
    t.add_attention("self_attn", m);
    if (m.qk_norm) {
      t.add("self_attn.q_norm.weight", "attn.q_norm.weight", m.head_dim);
      t.add("self_attn.k_norm.weight", "attn.k_norm.weight", m.head_dim);
    }
    t.add("post_attention_layernorm.weight", "mlp.norm.weight", m.hidden);
    t.add_gated_mlp(m);
  }
  t.begin("", "");
  t.add("model.norm.weight", "norm.weight", m.hidden);
  if (!m.tied_head) t.add("lm_head.weight", "head.weight", m.vocab);
  return t.take();
}

// Settings that the models of a generation have in common.
struct Generation {
  int64_t vocab, max_seq;
  double rope_theta;
  double rope_factor;  // 0 = RoPE is not scaled
  int64_t bos, eos;
  int64_t window = 0;
  std::string_view hf_type = {};
};

constexpr Generation kLlama1{32000, 2048, 10000, 0, 1, 2};
constexpr Generation kLlama2{32000, 4096, 10000, 0, 1, 2};
constexpr Generation kLlama3{128256, 8192, 500000, 0, 128000, 128001};
constexpr Generation kLlama31{128256, 131072, 500000, 8, 128000, 128001};
constexpr Generation kLlama32{128256, 131072, 500000, 32, 128000, 128001};
constexpr Generation kMistral1{32000, 32768, 10000, 0, 1, 2, 4096, "mistral"};
constexpr Generation kMistral3{32768, 32768, 1e6, 0, 1, 2, 0, "mistral"};
constexpr Generation kMistralLarge{32768, 131072, 1e6, 0, 1, 2, 0, "mistral"};
constexpr Generation kNemo{131072, 131072, 1e6, 0, 1, 2, 0, "mistral"};

enum class Head { own, tied };

Preset llama(const PresetRow& row, const Generation& generation, double norm_eps, Head head = Head::own) {
  ModelSpec common{.hf_type = std::string(generation.hf_type),
                   .vocab = generation.vocab,
                   .max_seq = generation.max_seq,
                   .norm_eps = norm_eps,
                   .rope_theta = generation.rope_theta,
                   .window = generation.window,
                   .tied_head = head == Head::tied,
                   .bos_token = generation.bos,
                   .eos_tokens = {generation.eos}};
  if (generation.rope_factor > 0) common.rope_scaling = RopeScaling{.factor = generation.rope_factor};
  return preset_of(row, common);
}

ModelSpec qwen(int64_t vocab, int64_t max_seq, Head head) {
  constexpr int64_t kEndOfText = 151643;
  return {.vocab = vocab,
          .max_seq = max_seq,
          .norm_eps = 1e-6,
          .rope_theta = 1e6,
          .tied_head = head == Head::tied,
          .bos_token = kEndOfText,
          .eos_tokens = {kEndOfText}};
}

Preset qwen2(const PresetRow& row, int64_t vocab, int64_t max_seq, Head head = Head::own) {
  ModelSpec common = qwen(vocab, max_seq, head);
  common.qkv_bias = true;
  return preset_of(row, common);
}

Preset qwen3(PresetRow row, int64_t vocab, int64_t max_seq, Head head = Head::own) {
  ModelSpec common = qwen(vocab, max_seq, head);
  common.qk_norm = true;
  row.head_dim = 128;
  return preset_of(row, common);
}

std::vector<Preset> llama_presets() {
  // clang-format off
  return {
      //         name               about                layers hidden heads kv_heads ffn    generation, norm_eps
      llama({"llama-7b",         "Meta LLaMA 7B",           32,  4096,  32,  32, 11008}, kLlama1, 1e-6),
      llama({"llama-13b",        "Meta LLaMA 13B",          40,  5120,  40,  40, 13824}, kLlama1, 1e-6),
      llama({"llama-30b",        "Meta LLaMA 30B",          60,  6656,  52,  52, 17920}, kLlama1, 1e-6),
      llama({"llama-65b",        "Meta LLaMA 65B",          80,  8192,  64,  64, 22016}, kLlama1, 1e-5),
      llama({"llama2-7b",        "Meta Llama 2 7B",         32,  4096,  32,  32, 11008}, kLlama2, 1e-5),
      llama({"llama2-13b",       "Meta Llama 2 13B",        40,  5120,  40,  40, 13824}, kLlama2, 1e-5),
      llama({"llama2-70b",       "Meta Llama 2 70B",        80,  8192,  64,   8, 28672}, kLlama2, 1e-5),
      llama({"llama3-8b",        "Meta Llama 3 8B",         32,  4096,  32,   8, 14336}, kLlama3, 1e-5),
      llama({"llama3-70b",       "Meta Llama 3 70B",        80,  8192,  64,   8, 28672}, kLlama3, 1e-5),
      llama({"llama3.1-8b",      "Meta Llama 3.1 8B",       32,  4096,  32,   8, 14336}, kLlama31, 1e-5),
      llama({"llama3.1-70b",     "Meta Llama 3.1 70B",      80,  8192,  64,   8, 28672}, kLlama31, 1e-5),
      llama({"llama3.1-405b",    "Meta Llama 3.1 405B",    126, 16384, 128,   8, 53248}, kLlama31, 1e-5),
      llama({"llama3.2-1b",      "Meta Llama 3.2 1B",       16,  2048,  32,   8,  8192}, kLlama32, 1e-5, Head::tied),
      llama({"llama3.2-3b",      "Meta Llama 3.2 3B",       28,  3072,  24,   8,  8192}, kLlama32, 1e-5, Head::tied),
      llama({"llama3.3-70b",     "Meta Llama 3.3 70B",      80,  8192,  64,   8, 28672}, kLlama31, 1e-5),
      llama({"mistral-7b",       "Mistral 7B v0.1",         32,  4096,  32,   8, 14336}, kMistral1, 1e-5),
      llama({"mistral-7b-v0.3",  "Mistral 7B v0.3",         32,  4096,  32,   8, 14336}, kMistral3, 1e-5),
      llama({"mistral-nemo-12b", "Mistral Nemo 12B (2407)", 40,  5120,  32,   8, 14336, 128}, kNemo, 1e-5),
      llama({"mistral-large-2",  "Mistral Large 2 (2407)",  88, 12288,  96,   8, 28672}, kMistralLarge, 1e-5),
      //        name            about               layers hidden heads kv_heads ffn  vocab  max_seq
      qwen2({"qwen1.5-72b",  "Alibaba Qwen1.5 72B",  80, 8192, 64, 64, 24576}, 152064,  32768),
      qwen2({"qwen2-0.5b",   "Alibaba Qwen2 0.5B",   24,  896, 14,  2,  4864}, 151936, 131072, Head::tied),
      qwen2({"qwen2-1.5b",   "Alibaba Qwen2 1.5B",   28, 1536, 12,  2,  8960}, 151936, 131072, Head::tied),
      qwen2({"qwen2-7b",     "Alibaba Qwen2 7B",     28, 3584, 28,  4, 18944}, 152064, 131072),
      qwen2({"qwen2-72b",    "Alibaba Qwen2 72B",    80, 8192, 64,  8, 29568}, 152064, 131072),
      qwen2({"qwen2.5-0.5b", "Alibaba Qwen2.5 0.5B", 24,  896, 14,  2,  4864}, 151936,  32768, Head::tied),
      qwen2({"qwen2.5-1.5b", "Alibaba Qwen2.5 1.5B", 28, 1536, 12,  2,  8960}, 151936, 131072, Head::tied),
      qwen2({"qwen2.5-3b",   "Alibaba Qwen2.5 3B",   36, 2048, 16,  2, 11008}, 151936,  32768, Head::tied),
      qwen2({"qwen2.5-7b",   "Alibaba Qwen2.5 7B",   28, 3584, 28,  4, 18944}, 152064, 131072),
      qwen2({"qwen2.5-14b",  "Alibaba Qwen2.5 14B",  48, 5120, 40,  8, 13824}, 152064, 131072),
      qwen2({"qwen2.5-32b",  "Alibaba Qwen2.5 32B",  64, 5120, 40,  8, 27648}, 152064, 131072),
      qwen2({"qwen2.5-72b",  "Alibaba Qwen2.5 72B",  80, 8192, 64,  8, 29568}, 152064, 131072),
      qwen3({"qwen3-0.6b",   "Alibaba Qwen3 0.6B",   28, 1024, 16,  8,  3072}, 151936,  32768, Head::tied),
      qwen3({"qwen3-1.7b",   "Alibaba Qwen3 1.7B",   28, 2048, 16,  8,  6144}, 151936,  32768, Head::tied),
      qwen3({"qwen3-4b",     "Alibaba Qwen3 4B",     36, 2560, 32,  8,  9728}, 151936,  32768, Head::tied),
      qwen3({"qwen3-8b",     "Alibaba Qwen3 8B",     36, 4096, 32,  8, 12288}, 151936,  32768),
      qwen3({"qwen3-14b",    "Alibaba Qwen3 14B",    40, 5120, 40,  8, 17408}, 151936,  32768),
      qwen3({"qwen3-32b",    "Alibaba Qwen3 32B",    64, 5120, 64,  8, 25600}, 151936,  40960),
  };
  // clang-format on
}

HfType hf_type(std::string_view model_type, std::string_view class_name, ModelSpec (*read)(HfReader&),
               void (*write)(const ModelSpec&, json&)) {
  return {.model_type = model_type,
          .class_name = class_name,
          .read = read,
          .write = write,
          .names = common_names(),
          .dropouts = {attention_dropout()},
          .padding = HfPadding{}};
}

}  // namespace

extern const ModelDef model{
    .name = "llama",
    .about = "Llama, Mistral, Qwen 1.5 to 3",
    .published_as = {"llama", "llama-like"},
    .positions = Positions::rotary,
    .free_heads = true,
    .options = {"rope_scaling", "qkv_bias", "out_bias", "mlp_bias", "qk_norm", "window", "full_attention_first",
                "full_attention_every"},
    .defaults = {.tied_head = false},
    .ffn_of = ffn_of,
    .check = check,
    .build = build,
    .tensors = tensors,
    .hf_prefix = "model.",
    .hf_types = {hf_type("llama", "LlamaForCausalLM", read_llama, write_llama),
                 hf_type("mistral", "MistralForCausalLM", read_mistral, write_mistral),
                 hf_type("qwen2", "Qwen2ForCausalLM", read_qwen2, write_qwen2),
                 hf_type("qwen3", "Qwen3ForCausalLM", read_qwen3, write_qwen3)},
    .hf_type_of = type_of,
    .presets = llama_presets,
};

}  // namespace sextant::llama
