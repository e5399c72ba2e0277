#include "plan/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/mesh_axes.h"
#include "cost/planned_target.h"
#include "exec/sim/simulate.h"
#include "models/model.h"
#include "passes/lower.h"
#include "passes/memory.h"

namespace sextant {

namespace {

// `seq` new positions for each of `batch` sequences.
Program generation(const ServingRequest& r, int64_t batch, int64_t seq) {
  Mesh mesh = mesh_of({.tp = r.tp});
  Use use{.kind = Use::Kind::generate, .batch = batch, .seq = seq, .cache_positions = r.context, .dtype = DType::bf16};
  return lower(build_model(r.spec, use, mesh), planned_target(r.profile), {});
}

double seconds_of(const ServingRequest& r, const Program& program) {
  Pricer pricer(r.machine, r.machine.efficiency(), r.profile);
  return simulate(std::span(&program, 1), pricer).seconds;
}

}  // namespace

Serving plan_serving(const ServingRequest& r) {
  if (r.machine.device.kind == DeviceKind::cpu)
    throw UserError({.place = r.machine.name,
                     .got = "is the machine of a CPU, and serving is planned in bf16 on accelerators",
                     .expected = "the machine of a GPU or another accelerator"});
  if (r.spec.heads % r.tp != 0 || r.tp < 1)
    throw UserError({.place = "mesh.tp",
                     .got = fmt::format("{} devices for {} heads", r.tp, r.spec.heads),
                     .expected = "a divisor of the heads"});
  if (r.prompt >= r.context || r.context > r.spec.max_seq)
    throw UserError({.place = "--context",
                     .got = fmt::format("{} positions with a prompt of {}", r.context, r.prompt),
                     .expected = fmt::format("more than the prompt, and at most the model's {}", r.spec.max_seq)});
  Program one = generation(r, 1, 1);
  MemoryUse use = memory_use(one);
  Serving s{.tp = r.tp, .prompt = r.prompt, .context = r.context, .weight_bytes = use.weights.n};
  s.cache_bytes_per_sequence = use.cache.n;
  s.cache_bytes_per_token = use.cache.n * r.tp / r.context;
  s.room_bytes = static_cast<int64_t>(r.machine.device.memory_bytes - r.machine.context_bytes);
  int64_t left = s.room_bytes - (one.arena_bytes - use.cache.n);
  s.most_sequences = use.cache.n > 0 ? std::max<int64_t>(0, left / use.cache.n) : 0;
  if (!s.fits()) return s;
  double first = seconds_of(r, generation(r, 1, r.prompt));
  for (int64_t batch = 1; batch <= s.most_sequences; batch *= 4) {
    double step = seconds_of(r, generation(r, batch, 1));
    s.batches.push_back({batch, first, step, static_cast<double>(batch) / step});
  }
  return s;
}

std::string serving_text(const Serving& s) {
  std::string out = fmt::format("\nserving on {} device{}, bf16, prompts of {} in a context of {}\n", s.tp,
                                s.tp == 1 ? "" : "s", s.prompt, s.context);
  auto line = [](const char* name, int64_t bytes) {
    return fmt::format("  {:<36} {:>19}  {:>10}\n", name, human_count(bytes), human(Bytes{bytes}));
  };
  out += line("weights on each device", s.weight_bytes) +
         line("cache for each token of a sequence", s.cache_bytes_per_token);
  out += line("cache of a full context, each device", s.cache_bytes_per_sequence);
  out += fmt::format("  {:<36} {:>19}\n", "sequences that fit", s.most_sequences);
  if (!s.fits()) return out + "  IT DOES NOT FIT: use more devices (mesh.tp), or a shorter --context\n";
  out +=
      fmt::format("  {:>9} {:>18} {:>22} {:>16}\n", "sequences", "first token ms", "ms for each further", "tokens/s");
  for (const ServingBatch& b : s.batches)
    out += fmt::format("  {:>9} {:>18.1f} {:>22.2f} {:>16.0f}\n", b.sequences, 1e3 * b.first_token_s,
                       1e3 * b.per_token_s, b.tokens_per_s);
  return out;
}

std::string serving_json(const Serving& s) {
  nlohmann::ordered_json batches = nlohmann::ordered_json::array();
  for (const ServingBatch& b : s.batches)
    batches.push_back({{"sequences", b.sequences},
                       {"first_token_s", b.first_token_s},
                       {"per_token_s", b.per_token_s},
                       {"tokens_per_s", b.tokens_per_s}});
  return nlohmann::ordered_json{{std::string(axis_of(&MeshSection::tp).name()), s.tp},
                                {"prompt", s.prompt},
                                {"context", s.context},
                                {"weight_bytes", s.weight_bytes},
                                {"cache_bytes_per_token", s.cache_bytes_per_token},
                                {"cache_bytes_per_sequence", s.cache_bytes_per_sequence},
                                {"fits", s.fits()},
                                {"most_sequences", s.most_sequences},
                                {"batches", batches}}
      .dump();
}

}  // namespace sextant
