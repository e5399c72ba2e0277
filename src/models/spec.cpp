#include "models/spec.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"

namespace sextant {

std::span<const ArchitectureTraits> all_traits() {
  static constexpr ArchitectureTraits kAll[] = {
      {.name = "gpt2"},
      {.name = "llama", .positions = Positions::rotary, .free_heads = true, .llama_options = true, .tied_head = false},
      {.name = "neox",
       .positions = Positions::rotary,
       .partial_rotary = true,
       .gelu_choice = true,
       .tied_head = false,
       .rotary_fraction = 0.25,
       .exact_gelu = true},
      {.name = "opt", .free_eps = false},
      {.name = "bloom", .positions = Positions::alibi, .free_ffn = false},
      {.name = "mpt", .positions = Positions::alibi, .free_ffn = false},
      {.name = "palm", .positions = Positions::rotary, .free_heads = true, .kv_heads = 1},
      {.name = "nemotron",
       .positions = Positions::rotary,
       .free_heads = true,
       .partial_rotary = true,
       .tied_head = false,
       .rotary_fraction = 0.5},
  };
  return kAll;
}

const ArchitectureTraits* find_traits(std::string_view architecture) {
  for (const ArchitectureTraits& traits : all_traits())
    if (traits.name == architecture) return &traits;
  return nullptr;
}

int64_t default_ffn(std::string_view architecture, int64_t hidden) {
  return architecture == "llama" ? round_up(hidden * 8 / 3, 256) : hidden * 4;
}

int64_t rotary_dims(const ModelSpec& spec) {
  return static_cast<int64_t>(std::floor(static_cast<double>(spec.head_dim) * spec.rotary_fraction + 1e-9));
}

std::string why_no_rope(const ArchitectureTraits& traits) {
  switch (traits.positions) {
    case Positions::rotary:
      return "";
    case Positions::learned:
      return fmt::format("{} has learned positions and no RoPE", traits.name);
    case Positions::alibi:
      return fmt::format("{} has ALiBi and no RoPE", traits.name);
  }
  return "";
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
                           Size{"vocab", spec.vocab, 0, kMaxVocab}, Size{"max_seq", spec.max_seq, 1, kMaxSeq},
                           Size{"window", spec.window, 0, kMaxSeq}}) {
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
  if (!(spec.rotary_fraction > 0 && spec.rotary_fraction <= 1))
    problems.push_back(
        {{"rotary_fraction"}, fmt::format("got {}", spec.rotary_fraction), "a number above 0, at most 1"});
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

// The sizes are known to be positive here, in this function and the next.
void check_heads(const ModelSpec& spec, const ArchitectureTraits& traits, std::vector<SpecProblem>& problems) {
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
  if (traits.positions == Positions::rotary && spec.rotary_fraction == 1 && spec.head_dim % 2 != 0 && !rounded)
    problems.push_back({{"head_dim", "heads", "hidden"},
                        fmt::format("head_dim {} is odd", spec.head_dim),
                        "an even head_dim, because RoPE turns pairs"});
  if (traits.free_heads) return;
  if (spec.kv_heads != spec.heads)
    problems.push_back({{"kv_heads", "heads"},
                        fmt::format("kv_heads {} differs from heads {}", spec.kv_heads, spec.heads),
                        fmt::format("equal numbers, because {} has no grouped-query attention", traits.name)});
  if (spec.hidden % spec.heads == 0 && spec.head_dim != spec.hidden / spec.heads)
    problems.push_back({{"head_dim", "heads", "hidden"},
                        fmt::format("head_dim {} is not hidden / heads", spec.head_dim),
                        fmt::format("{}, because {} knows no other", spec.hidden / spec.heads, traits.name)});
}

void check_options(const ModelSpec& spec, const ArchitectureTraits& traits, std::vector<SpecProblem>& problems) {
  if (!traits.free_ffn && spec.ffn != 4 * spec.hidden)
    problems.push_back({{"ffn", "hidden"},
                        fmt::format("ffn {} is not 4 hidden", spec.ffn),
                        fmt::format("{}, because {} knows no other", 4 * spec.hidden, traits.name)});
  if (!traits.free_eps && spec.norm_eps != 1e-5)
    problems.push_back({{"norm_eps"},
                        fmt::format("norm_eps {} is not 1e-05", spec.norm_eps),
                        fmt::format("1e-05, because {} knows no other", traits.name)});
  if (spec.rope_scaling && !traits.llama_options) {
    std::string why = why_no_rope(traits);
    problems.push_back({{"rope_scaling"},
                        why.empty() ? fmt::format("{} does not stretch its RoPE", traits.name) : why,
                        "no rope_scaling"});
  }
  bool rotary = traits.positions == Positions::rotary, turned = rotary_dims(spec) >= 2 && rotary_dims(spec) % 2 == 0;
  if (spec.rotary_fraction != 1 && !traits.partial_rotary)
    problems.push_back({{"rotary_fraction"},
                        rotary ? fmt::format("{} turns whole heads", traits.name) : why_no_rope(traits),
                        "no rotary_fraction"});
  else if (rotary && spec.rotary_fraction != 1 && !turned)
    problems.push_back(
        {{"rotary_fraction", "head_dim"},
         fmt::format("{} of head_dim {} is {} elements", spec.rotary_fraction, spec.head_dim, rotary_dims(spec)),
         "an even number of them, because RoPE turns pairs"});
  if (spec.exact_gelu && !traits.gelu_choice)
    problems.push_back({{"exact_gelu"}, fmt::format("{} has no choice of GELU", traits.name), "no exact_gelu"});
  struct Option {
    std::string_view field, what;
    bool given;
  };
  const Option options[] = {{"qkv_bias", "no option of biases", spec.qkv_bias},
                            {"qk_norm", "no norm of heads", spec.qk_norm},
                            {"window", "no window", spec.window > 0}};
  int given = 0;
  for (const Option& option : options) {
    given += option.given ? 1 : 0;
    if (option.given && !traits.llama_options)
      problems.push_back(
          {{option.field}, fmt::format("{} has {}", traits.name, option.what), fmt::format("no {}", option.field)});
  }
  if (given > 1 && traits.llama_options)
    problems.push_back({{"qk_norm", "qkv_bias", "window"},
                        "more than one of qkv_bias, qk_norm and window is given",
                        "one of them at most: Qwen 2, Qwen 3 or Mistral"});
}

}  // namespace

std::vector<SpecProblem> problems_of(const ModelSpec& spec) {
  std::vector<SpecProblem> problems;
  const ArchitectureTraits* traits = find_traits(spec.architecture);
  if (!traits) {
    std::vector<std::string_view> names;
    for (const ArchitectureTraits& known : all_traits()) names.push_back(known.name);
    problems.push_back({{"architecture"},
                        fmt::format("got \"{}\"", spec.architecture),
                        fmt::format("one of {}", fmt::join(names, ", "))});
  }
  check_sizes(spec, problems);
  check_numbers(spec, problems);
  bool countable = spec.hidden > 0 && spec.heads > 0 && spec.kv_heads > 0 && spec.head_dim > 0;
  if (!traits || !countable) return problems;
  check_heads(spec, *traits, problems);
  check_options(spec, *traits, problems);
  return problems;
}

}  // namespace sextant
