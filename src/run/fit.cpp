#include "run/fit.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

namespace {

// Those that any model has, each keeping less than the one before.
std::vector<RecomputeMode> recompute_modes() {
  std::vector<RecomputeMode> modes;
  for (const RecomputeChoice& choice : kRecomputeModes)
    if (choice.is_searched && !choice.needs_latent_attention) modes.push_back(choice.value);
  return modes;
}

std::vector<int64_t> smaller_microbatches(const RunConfig& run) {
  std::vector<int64_t> sizes{run.batch.microbatch};
  for (int64_t size = run.batch.microbatch / 2; size >= 1; size /= 2)
    if (run.batch.sequences % (size * run.mesh.dp) == 0) sizes.push_back(size);
  return sizes;
}

}  // namespace

Bytes largest_arena(const RunPrograms& programs, MemorySpace space) {
  int64_t most = 0;
  for (size_t i = 0; i < programs.train.size(); ++i)
    most = std::max(most, programs.arena_bytes(static_cast<int>(i), space));
  return {most};
}

std::vector<Alternative> settings_that_fit(const RunConfig& run, const ModelSpec& spec, const Target& target,
                                           Bytes room, size_t most) {
  std::vector<Alternative> found;
  const std::vector<RecomputeMode> modes = recompute_modes();
  auto first = std::ranges::find(modes, run.train.recompute);
  if (first == modes.end()) --first;  // another mode than these: the last keeps less
  // Smaller microbatches cost less time than computing everything again, until they no longer fill the device.
  for (int64_t microbatch : smaller_microbatches(run)) {
    for (auto mode = first; mode != modes.end() && found.size() < most; ++mode) {
      if (microbatch == run.batch.microbatch && mode == first && *first == run.train.recompute) continue;  // the run
      RunConfig other = run;
      other.batch.microbatch = microbatch;
      other.train.recompute = *mode;
      // Only sizes are asked for: whoever takes these settings checks the Programs of them.
      Bytes arena = largest_arena(build_programs(other, run_shape(other, spec), target, {}, Checks::none));
      if (arena > room) continue;
      std::string overrides;
      if (microbatch != run.batch.microbatch) overrides = fmt::format("batch.microbatch={}", microbatch);
      if (mode != first) overrides += fmt::format("{}train.recompute={}", overrides.empty() ? "" : " ", word_of(*mode));
      found.push_back({overrides, arena});
      break;  // more recompute at this size only costs time
    }
  }
  return found;
}

void require_room(const RunConfig& run, const RunShape& shape, const RunPrograms& programs, const Target& target,
                  const Room& there_is) {
  const Bytes on_host = largest_arena(programs, MemorySpace::host);
  if (there_is.host && on_host > *there_is.host)
    throw DoesNotFit({.place = run.source,
                      .got = fmt::format("{} of a rank are offloaded to the host, which has {}", human(on_host),
                                         human(*there_is.host)),
                      .expected = "a plan that fits",
                      .hint = "turn some of offload off, or share optimizer state among more ranks (mesh.zero=1)"});
  const Bytes room{there_is.device.n - (there_is.host ? 0 : on_host.n)};
  Bytes need = largest_arena(programs);
  if (need <= room) return;
  std::string would_fit;
  for (const Alternative& other : settings_that_fit(run, shape.spec, target, room))
    would_fit += fmt::format("{}{} ({})", would_fit.empty() ? "" : "; or ", other.overrides, human(other.arena));
  throw DoesNotFit({.place = run.source,
                    .got = fmt::format("the plan needs {} on a rank, and there are {}", human(need), human(room)),
                    .expected = "a plan that fits",
                    .hint = would_fit.empty()
                                ? "even one sequence at a time with full recompute is too much: use a smaller model, a "
                                  "shorter batch.seq, or more ranks with mesh.zero"
                                : "would fit: " + would_fit});
}

}  // namespace sextant
