// Models of the GPT kind with learned or rotary positions: GPT-2 and GPT-3, MT-NLG, GPT-NeoX and Pythia, OPT.
#include "models/presets.h"

namespace sextant {

namespace {

// What a family has in common.
struct Family {
  std::string_view architecture;
  int64_t vocab, max_seq;
  int64_t bos, eos;
  bool exact_gelu = false;
};

constexpr Family kGpt2{"gpt2", 50257, 1024, 50256, 50256};
constexpr Family kGpt3{"gpt2", 50257, 2048, 50256, 50256};
constexpr Family kMtNlg{"gpt2", 51200, 2048, 50256, 50256};  // GPT-2's tokens, padded for tensor parallelism
constexpr Family kNeox{"neox", 50432, 2048, 0, 0};
constexpr Family kPythia{"neox", 50304, 2048, 0, 0, true};
constexpr Family kPythia7{"neox", 50432, 2048, 0, 0, true};
constexpr Family kPythia12{"neox", 50688, 2048, 0, 0, true};
constexpr Family kOpt{"opt", 50272, 2048, 2, 2};

struct Row {
  std::string_view name, about;
  const Family& family;
  int64_t layers, hidden, heads;
};

Preset preset(const Row& row) {
  const Family& family = row.family;
  const ArchitectureTraits& traits = *find_traits(family.architecture);
  return {row.name,
          row.about,
          {.architecture = std::string(family.architecture),
           .layers = row.layers,
           .hidden = row.hidden,
           .heads = row.heads,
           .kv_heads = row.heads,
           .head_dim = row.hidden / row.heads,
           .ffn = 4 * row.hidden,
           .vocab = family.vocab,
           .max_seq = family.max_seq,
           .norm_eps = 1e-5,
           .rotary_fraction = traits.rotary_fraction,
           .exact_gelu = family.exact_gelu,
           .tied_head = traits.tied_head,
           .bos_token = family.bos,
           .eos_tokens = {family.eos}}};
}

}  // namespace

// Two rows of GPT-3's table cannot be as printed: 24 heads of 128 for 1.3B are wider than its 2048, and 13B's width of
// 5140 is not 40 heads of 128. 16 heads and 5120 are what everybody takes.
std::vector<Preset> gpt_presets() {
  // clang-format off
  return {
      //         name            about                   family    layers hidden heads
      preset({"gpt2",         "OpenAI GPT-2 124M",       kGpt2,      12,    768,  12}),
      preset({"gpt2-medium",  "OpenAI GPT-2 355M",       kGpt2,      24,   1024,  16}),
      preset({"gpt2-large",   "OpenAI GPT-2 774M",       kGpt2,      36,   1280,  20}),
      preset({"gpt2-xl",      "OpenAI GPT-2 1.6B",       kGpt2,      48,   1600,  25}),
      preset({"gpt3-125m",    "OpenAI GPT-3 Small",      kGpt3,      12,    768,  12}),
      preset({"gpt3-350m",    "OpenAI GPT-3 Medium",     kGpt3,      24,   1024,  16}),
      preset({"gpt3-760m",    "OpenAI GPT-3 Large",      kGpt3,      24,   1536,  16}),
      preset({"gpt3-1.3b",    "OpenAI GPT-3 XL",         kGpt3,      24,   2048,  16}),
      preset({"gpt3-2.7b",    "OpenAI GPT-3 2.7B",       kGpt3,      32,   2560,  32}),
      preset({"gpt3-6.7b",    "OpenAI GPT-3 6.7B",       kGpt3,      32,   4096,  32}),
      preset({"gpt3-13b",     "OpenAI GPT-3 13B",        kGpt3,      40,   5120,  40}),
      preset({"gpt3-175b",    "OpenAI GPT-3 175B",       kGpt3,      96,  12288,  96}),
      preset({"mt-nlg-530b",  "Megatron-Turing NLG 530B", kMtNlg,   105,  20480, 128}),
      preset({"gpt-neox-20b", "EleutherAI GPT-NeoX-20B", kNeox,      44,   6144,  64}),
      preset({"pythia-70m",   "EleutherAI Pythia 70M",   kPythia,     6,    512,   8}),
      preset({"pythia-160m",  "EleutherAI Pythia 160M",  kPythia,    12,    768,  12}),
      preset({"pythia-410m",  "EleutherAI Pythia 410M",  kPythia,    24,   1024,  16}),
      preset({"pythia-1b",    "EleutherAI Pythia 1B",    kPythia,    16,   2048,   8}),
      preset({"pythia-1.4b",  "EleutherAI Pythia 1.4B",  kPythia,    24,   2048,  16}),
      preset({"pythia-2.8b",  "EleutherAI Pythia 2.8B",  kPythia,    32,   2560,  32}),
      preset({"pythia-6.9b",  "EleutherAI Pythia 6.9B",  kPythia7,   32,   4096,  32}),
      preset({"pythia-12b",   "EleutherAI Pythia 12B",   kPythia12,  36,   5120,  40}),
      preset({"opt-125m",     "Meta OPT 125M",           kOpt,       12,    768,  12}),
      preset({"opt-1.3b",     "Meta OPT 1.3B",           kOpt,       24,   2048,  32}),
      preset({"opt-2.7b",     "Meta OPT 2.7B",           kOpt,       32,   2560,  32}),
      preset({"opt-6.7b",     "Meta OPT 6.7B",           kOpt,       32,   4096,  32}),
      preset({"opt-13b",      "Meta OPT 13B",            kOpt,       40,   5120,  40}),
      preset({"opt-30b",      "Meta OPT 30B",            kOpt,       48,   7168,  56}),
      preset({"opt-66b",      "Meta OPT 66B",            kOpt,       64,   9216,  72}),
      preset({"opt-175b",     "Meta OPT 175B",           kOpt,       96,  12288,  96}),
  };
  // clang-format on
}

}  // namespace sextant
