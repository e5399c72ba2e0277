// Llama and Mistral.
#include "models/presets.h"

namespace sextant {

namespace {

// What a generation has in common.
struct Generation {
  int64_t vocab, max_seq;
  double rope_theta;
  double rope_factor;  // 0 = RoPE is not scaled
  int64_t bos, eos;
  int64_t window = 0;
  std::string_view hf_type = "";
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

struct Row {
  std::string_view name, about;
  const Generation& generation;
  int64_t layers, hidden, heads, kv_heads, ffn;
  double norm_eps;
  Head head = Head::own;
  int64_t head_dim = 0;  // 0 = hidden / heads
};

Preset preset(const Row& row) {
  const Generation& generation = row.generation;
  ModelSpec spec{.architecture = "llama",
                 .hf_type = std::string(generation.hf_type),
                 .layers = row.layers,
                 .hidden = row.hidden,
                 .heads = row.heads,
                 .kv_heads = row.kv_heads,
                 .head_dim = row.head_dim > 0 ? row.head_dim : row.hidden / row.heads,
                 .ffn = row.ffn,
                 .vocab = generation.vocab,
                 .max_seq = generation.max_seq,
                 .norm_eps = row.norm_eps,
                 .rope_theta = generation.rope_theta,
                 .window = generation.window,
                 .tied_head = row.head == Head::tied,
                 .bos_token = generation.bos,
                 .eos_tokens = {generation.eos}};
  if (generation.rope_factor > 0) spec.rope_scaling = RopeScaling{.factor = generation.rope_factor};
  return {row.name, row.about, spec};
}

}  // namespace

std::vector<Preset> llama_presets() {
  // clang-format off
  return {
      //         name               about                   generation  layers hidden heads kv_heads ffn norm_eps
      preset({"llama-7b",         "Meta LLaMA 7B",           kLlama1,     32,  4096,  32,  32, 11008, 1e-6}),
      preset({"llama-13b",        "Meta LLaMA 13B",          kLlama1,     40,  5120,  40,  40, 13824, 1e-6}),
      preset({"llama-30b",        "Meta LLaMA 30B",          kLlama1,     60,  6656,  52,  52, 17920, 1e-6}),
      preset({"llama-65b",        "Meta LLaMA 65B",          kLlama1,     80,  8192,  64,  64, 22016, 1e-5}),
      preset({"llama2-7b",        "Meta Llama 2 7B",         kLlama2,     32,  4096,  32,  32, 11008, 1e-5}),
      preset({"llama2-13b",       "Meta Llama 2 13B",        kLlama2,     40,  5120,  40,  40, 13824, 1e-5}),
      preset({"llama2-70b",       "Meta Llama 2 70B",        kLlama2,     80,  8192,  64,   8, 28672, 1e-5}),
      preset({"llama3-8b",        "Meta Llama 3 8B",         kLlama3,     32,  4096,  32,   8, 14336, 1e-5}),
      preset({"llama3-70b",       "Meta Llama 3 70B",        kLlama3,     80,  8192,  64,   8, 28672, 1e-5}),
      preset({"llama3.1-8b",      "Meta Llama 3.1 8B",       kLlama31,    32,  4096,  32,   8, 14336, 1e-5}),
      preset({"llama3.1-70b",     "Meta Llama 3.1 70B",      kLlama31,    80,  8192,  64,   8, 28672, 1e-5}),
      preset({"llama3.1-405b",    "Meta Llama 3.1 405B",     kLlama31,   126, 16384, 128,   8, 53248, 1e-5}),
      preset({"llama3.2-1b",      "Meta Llama 3.2 1B",       kLlama32,    16,  2048,  32,   8,  8192, 1e-5, Head::tied}),
      preset({"llama3.2-3b",      "Meta Llama 3.2 3B",       kLlama32,    28,  3072,  24,   8,  8192, 1e-5, Head::tied}),
      preset({"llama3.3-70b",     "Meta Llama 3.3 70B",      kLlama31,    80,  8192,  64,   8, 28672, 1e-5}),
      preset({"mistral-7b",       "Mistral 7B v0.1",         kMistral1,   32,  4096,  32,   8, 14336, 1e-5}),
      preset({"mistral-7b-v0.3",  "Mistral 7B v0.3",         kMistral3,   32,  4096,  32,   8, 14336, 1e-5}),
      preset({"mistral-nemo-12b", "Mistral Nemo 12B (2407)", kNemo,       40,  5120,  32,   8, 14336, 1e-5, Head::own, 128}),
      preset({"mistral-large-2",  "Mistral Large 2 (2407)",  kMistralLarge, 88, 12288, 96,  8, 28672, 1e-5}),
  };
  // clang-format on
}

}  // namespace sextant
