// Models with ALiBi: BLOOM, and MPT in the sizes released and those of its training code.
#include "models/presets.h"

namespace sextant {

namespace {

struct Row {
  std::string_view name, about;
  int64_t layers, hidden, heads;
};

ModelSpec spec_of(std::string_view architecture, const Row& row) {
  return {.architecture = std::string(architecture),
          .layers = row.layers,
          .hidden = row.hidden,
          .heads = row.heads,
          .kv_heads = row.heads,
          .head_dim = row.hidden / row.heads,
          .ffn = 4 * row.hidden,
          .max_seq = 2048,
          .norm_eps = 1e-5,
          .tied_head = true};
}

Preset bloom(const Row& row) {
  ModelSpec spec = spec_of("bloom", row);
  spec.vocab = 250880;
  spec.bos_token = 1;
  spec.eos_tokens = {2};
  return {row.name, row.about, spec};
}

// The released ones have more tokens than those of the training code, and 30B sees further.
Preset mpt(const Row& row, int64_t vocab = 50368, int64_t max_seq = 2048) {
  ModelSpec spec = spec_of("mpt", row);
  spec.vocab = vocab;
  spec.max_seq = max_seq;
  spec.eos_tokens = {0};
  return {row.name, row.about, spec};
}

}  // namespace

std::vector<Preset> alibi_presets() {
  // clang-format off
  return {
      //        name          about                     layers hidden heads
      bloom({"bloom-560m", "BigScience BLOOM 560M",       24,   1024,  16}),
      bloom({"bloom-1b1",  "BigScience BLOOM 1.1B",       24,   1536,  16}),
      bloom({"bloom-1b7",  "BigScience BLOOM 1.7B",       24,   2048,  16}),
      bloom({"bloom-3b",   "BigScience BLOOM 3B",         30,   2560,  32}),
      bloom({"bloom-7b1",  "BigScience BLOOM 7.1B",       30,   4096,  32}),
      bloom({"bloom-176b", "BigScience BLOOM 176B",       70,  14336, 112}),
      mpt({"mpt-125m",     "llm-foundry MPT 125M",        12,    768,  12}),
      mpt({"mpt-350m",     "llm-foundry MPT 350M",        24,   1024,  16}),
      mpt({"mpt-760m",     "llm-foundry MPT 760M",        24,   1536,  12}),
      mpt({"mpt-1b",       "llm-foundry MPT 1B",          24,   2048,  16}),
      mpt({"mpt-3b",       "llm-foundry MPT 3B",          32,   2560,  20}),
      mpt({"mpt-7b",       "MosaicML MPT 7B",             32,   4096,  32}, 50432),
      mpt({"mpt-13b",      "llm-foundry MPT 13B",         40,   5120,  40}),
      mpt({"mpt-30b",      "MosaicML MPT 30B",            48,   7168,  64}, 50432, 8192),
      mpt({"mpt-70b",      "llm-foundry MPT 70B",         80,   8192,  64}),
  };
  // clang-format on
}

}  // namespace sextant
