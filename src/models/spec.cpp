#include "models/spec.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"

namespace sextant {

int64_t default_ffn(std::string_view architecture, int64_t hidden) {
  return architecture == "llama" ? round_up(hidden * 8 / 3, 256) : hidden * 4;
}

namespace {

void check_sizes(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  struct Size {
    std::string_view field;
    int64_t value, low, high;
  };
  for (const Size& size : {Size{"layers", spec.layers, 1, kMaxLayers}, Size{"hidden", spec.hidden, 1, kMaxHidden},
                           Size{"heads", spec.heads, 1, kMaxHeads}, Size{"kv_heads", spec.kv_heads, 1, kMaxHeads},
                           Size{"head_dim", spec.head_dim, 1, kMaxHidden}, Size{"ffn", spec.ffn, 1, kMaxFfn},
                           Size{"vocab", spec.vocab, 0, kMaxVocab}, Size{"max_seq", spec.max_seq, 1, kMaxSeq}}) {
    if (size.value < size.low || size.value > size.high)
      problems.push_back({{size.field},
                          fmt::format("got {}", size.value),
                          fmt::format("an integer from {} to {}", size.low, size.high)});
  }
}

void check_numbers(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  auto positive = [&](std::string_view field, double value) {
    if (!(std::isfinite(value) && value > 0))
      problems.push_back({{field}, fmt::format("got {}", value), "a number above 0"});
  };
  positive("norm_eps", spec.norm_eps);
  positive("rope_theta", spec.rope_theta);
  if (!(std::isfinite(spec.init_std) && spec.init_std >= 0))
    problems.push_back({{"init_std"}, fmt::format("got {}", spec.init_std), "a number of at least 0"});
  if (!spec.rope_scaling) return;
  const RopeScaling& scaling = *spec.rope_scaling;
  positive("rope_scaling.factor", scaling.factor);
  positive("rope_scaling.low_freq_factor", scaling.low_freq_factor);
  if (!(std::isfinite(scaling.high_freq_factor) && scaling.high_freq_factor > scaling.low_freq_factor))
    problems.push_back({{"rope_scaling.high_freq_factor", "rope_scaling.low_freq_factor"},
                        fmt::format("high_freq_factor {} is not above low_freq_factor {}", scaling.high_freq_factor,
                                    scaling.low_freq_factor),
                        ""});
  if (scaling.original_max_positions < 1 || scaling.original_max_positions > kMaxSeq)
    problems.push_back({{"rope_scaling.original_max_positions"},
                        fmt::format("got {}", scaling.original_max_positions),
                        fmt::format("an integer from 1 to {}", kMaxSeq)});
}

// The sizes are known to be positive here.
void check_heads(const ModelSpec& spec, std::vector<SpecProblem>& problems) {
  // Also when head_dim is given: Hugging Face refuses such a shape, so it could not be exported.
  if (spec.hidden % spec.heads != 0)
    problems.push_back({{"heads", "hidden"},
                        fmt::format("heads {} does not divide hidden {}", spec.heads, spec.hidden),
                        fmt::format("a divisor of {}", spec.hidden)});
  if (spec.heads % spec.kv_heads != 0)
    problems.push_back({{"kv_heads", "heads"},
                        fmt::format("kv_heads {} does not divide heads {}", spec.kv_heads, spec.heads),
                        fmt::format("a divisor of {}", spec.heads)});
  bool rounded = spec.hidden % spec.heads != 0 && spec.head_dim == spec.hidden / spec.heads;  // reported above
  if (spec.architecture == "llama" && spec.head_dim % 2 != 0 && !rounded)
    problems.push_back({{"head_dim", "heads", "hidden"},
                        fmt::format("head_dim {} is odd", spec.head_dim),
                        "an even head_dim, because RoPE turns pairs"});
  if (spec.architecture == "gpt2") {
    if (spec.kv_heads != spec.heads)
      problems.push_back({{"kv_heads", "heads"},
                          fmt::format("kv_heads {} differs from heads {}", spec.kv_heads, spec.heads),
                          "equal numbers, because gpt2 has no grouped-query attention"});
    if (spec.hidden % spec.heads == 0 && spec.head_dim != spec.hidden / spec.heads)
      problems.push_back({{"head_dim", "heads", "hidden"},
                          fmt::format("head_dim {} is not hidden / heads", spec.head_dim),
                          fmt::format("{}, because gpt2 knows no other", spec.hidden / spec.heads)});
    if (spec.rope_scaling)
      problems.push_back({{"rope_scaling"}, "gpt2 has learned positions and no RoPE", "no rope_scaling"});
  }
}

}  // namespace

std::vector<SpecProblem> problems_of(const ModelSpec& spec) {
  std::vector<SpecProblem> problems;
  if (spec.architecture != "gpt2" && spec.architecture != "llama")
    problems.push_back({{"architecture"}, fmt::format("got \"{}\"", spec.architecture), "one of gpt2, llama"});
  check_sizes(spec, problems);
  check_numbers(spec, problems);
  bool countable = spec.hidden > 0 && spec.heads > 0 && spec.kv_heads > 0 && spec.head_dim > 0;
  if (countable) check_heads(spec, problems);
  return problems;
}

}  // namespace sextant
