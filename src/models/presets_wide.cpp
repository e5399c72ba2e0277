// PaLM, by its paper, and Nemotron-4.
#include "models/presets.h"

namespace sextant {

namespace {

struct Row {
  std::string_view name, about;
  int64_t layers, hidden, heads;
};

Preset palm(const Row& row) {
  return {row.name,
          row.about,
          {.architecture = "palm",
           .layers = row.layers,
           .hidden = row.hidden,
           .heads = row.heads,
           .kv_heads = 1,
           .head_dim = 256,
           .ffn = 4 * row.hidden,
           .vocab = 256000,
           .max_seq = 2048,
           .norm_eps = 1e-6,
           .tied_head = true}};
}

Preset nemotron(const Row& row) {
  return {row.name,
          row.about,
          {.architecture = "nemotron",
           .layers = row.layers,
           .hidden = row.hidden,
           .heads = row.heads,
           .kv_heads = 8,
           .head_dim = row.hidden / row.heads,
           .ffn = 4 * row.hidden,
           .vocab = 256000,
           .max_seq = 4096,
           .norm_eps = 1e-5,
           .rotary_fraction = 0.5,
           .init_std = 0.0134,
           .bos_token = 2,
           .eos_tokens = {3}}};
}

}  // namespace

std::vector<Preset> wide_presets() {
  // clang-format off
  return {
      //          name               about               layers hidden heads
      palm({    "palm-8b",        "Google PaLM 8B",        32,   4096,  16}),
      palm({    "palm-62b",       "Google PaLM 62B",       64,   8192,  32}),
      palm({    "palm-540b",      "Google PaLM 540B",     118,  18432,  48}),
      nemotron({"nemotron4-15b",  "NVIDIA Nemotron-4 15B", 32,   6144,  48}),
      nemotron({"nemotron4-340b", "NVIDIA Nemotron-4 340B", 96, 18432,  96}),
  };
  // clang-format on
}

}  // namespace sextant
