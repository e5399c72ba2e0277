#include "models/presets.h"

#include <array>

namespace sextant {

namespace {

struct Gpt2Row {
  std::string_view name, about;
  int64_t layers, hidden, heads;
};

ModelSpec spec_of(const Gpt2Row& row) {
  return {.architecture = "gpt2",
          .layers = row.layers,
          .hidden = row.hidden,
          .heads = row.heads,
          .kv_heads = row.heads,
          .head_dim = row.hidden / row.heads,
          .ffn = 4 * row.hidden,
          .vocab = 50257,
          .max_seq = 1024,
          .norm_eps = 1e-5,
          .tied_head = true,
          .bos_token = 50256,
          .eos_tokens = {50256}};
}

// What a generation of Llama has in common.
struct Generation {
  int64_t vocab, max_seq;
  double rope_theta;
  double rope_factor;  // 0 = RoPE is not scaled
  int64_t bos, eos;
};

constexpr Generation kLlama1{32000, 2048, 10000, 0, 1, 2};
constexpr Generation kLlama2{32000, 4096, 10000, 0, 1, 2};
constexpr Generation kLlama3{128256, 8192, 500000, 0, 128000, 128001};
constexpr Generation kLlama31{128256, 131072, 500000, 8, 128000, 128001};
constexpr Generation kLlama32{128256, 131072, 500000, 32, 128000, 128001};

enum class Head { own, tied };

struct LlamaRow {
  std::string_view name, about;
  const Generation& generation;
  int64_t layers, hidden, heads, kv_heads, ffn;
  double norm_eps;
  Head head = Head::own;
};

ModelSpec spec_of(const LlamaRow& row) {
  const Generation& generation = row.generation;
  ModelSpec spec{.architecture = "llama",
                 .layers = row.layers,
                 .hidden = row.hidden,
                 .heads = row.heads,
                 .kv_heads = row.kv_heads,
                 .head_dim = row.hidden / row.heads,
                 .ffn = row.ffn,
                 .vocab = generation.vocab,
                 .max_seq = generation.max_seq,
                 .norm_eps = row.norm_eps,
                 .rope_theta = generation.rope_theta,
                 .tied_head = row.head == Head::tied,
                 .bos_token = generation.bos,
                 .eos_tokens = {generation.eos}};
  if (generation.rope_factor > 0) spec.rope_scaling = RopeScaling{.factor = generation.rope_factor};
  return spec;
}

template <class Row>
Preset preset(const Row& row) {
  return {row.name, row.about, spec_of(row)};
}

}  // namespace

std::span<const Preset> presets() {
  // clang-format off
  static const std::array kPresets{
      //              name             about              layers hidden heads
      preset(Gpt2Row{"gpt2",          "OpenAI GPT-2 124M",  12,    768,  12}),
      preset(Gpt2Row{"gpt2-medium",   "OpenAI GPT-2 355M",  24,   1024,  16}),
      preset(Gpt2Row{"gpt2-large",    "OpenAI GPT-2 774M",  36,   1280,  20}),
      preset(Gpt2Row{"gpt2-xl",       "OpenAI GPT-2 1.6B",  48,   1600,  25}),
      //              name             about               generation layers hidden heads kv_heads ffn norm_eps
      preset(LlamaRow{"llama-7b",      "Meta LLaMA 7B",       kLlama1,   32,  4096,  32,  32, 11008, 1e-6}),
      preset(LlamaRow{"llama-13b",     "Meta LLaMA 13B",      kLlama1,   40,  5120,  40,  40, 13824, 1e-6}),
      preset(LlamaRow{"llama-30b",     "Meta LLaMA 30B",      kLlama1,   60,  6656,  52,  52, 17920, 1e-6}),
      preset(LlamaRow{"llama-65b",     "Meta LLaMA 65B",      kLlama1,   80,  8192,  64,  64, 22016, 1e-5}),
      preset(LlamaRow{"llama2-7b",     "Meta Llama 2 7B",     kLlama2,   32,  4096,  32,  32, 11008, 1e-5}),
      preset(LlamaRow{"llama2-13b",    "Meta Llama 2 13B",    kLlama2,   40,  5120,  40,  40, 13824, 1e-5}),
      preset(LlamaRow{"llama2-70b",    "Meta Llama 2 70B",    kLlama2,   80,  8192,  64,   8, 28672, 1e-5}),
      preset(LlamaRow{"llama3-8b",     "Meta Llama 3 8B",     kLlama3,   32,  4096,  32,   8, 14336, 1e-5}),
      preset(LlamaRow{"llama3-70b",    "Meta Llama 3 70B",    kLlama3,   80,  8192,  64,   8, 28672, 1e-5}),
      preset(LlamaRow{"llama3.1-8b",   "Meta Llama 3.1 8B",   kLlama31,  32,  4096,  32,   8, 14336, 1e-5}),
      preset(LlamaRow{"llama3.1-70b",  "Meta Llama 3.1 70B",  kLlama31,  80,  8192,  64,   8, 28672, 1e-5}),
      preset(LlamaRow{"llama3.1-405b", "Meta Llama 3.1 405B", kLlama31, 126, 16384, 128,   8, 53248, 1e-5}),
      preset(LlamaRow{"llama3.2-1b",   "Meta Llama 3.2 1B",   kLlama32,  16,  2048,  32,   8,  8192, 1e-5, Head::tied}),
      preset(LlamaRow{"llama3.2-3b",   "Meta Llama 3.2 3B",   kLlama32,  28,  3072,  24,   8,  8192, 1e-5, Head::tied}),
  };
  // clang-format on
  return kPresets;
}

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

}  // namespace sextant
