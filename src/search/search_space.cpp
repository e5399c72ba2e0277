#include "search/search_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/layout_limits.h"

namespace sextant {

namespace {

constexpr int64_t kLongSequence = 16384;        // from here on context parallelism is usual
constexpr int64_t kMostTokensAtOnce = 1 << 17;  // of a microbatch on one rank
constexpr int64_t kMostChunks = 8;

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

struct Grid {
  int64_t dp, tp, pp, cp;
};

class Space {
 public:
  explicit Space(const SpaceRequest& request) : request_(request), run_(request.run), spec_(request.spec) {}

  std::vector<LayoutChoice> all() {
    for (const Grid& grid : grids())
      if (run_.batch.sequences % grid.dp == 0) add_batches(grid);
    if (request_.limits)
      std::erase_if(found_, [&](const LayoutChoice& choice) { return !request_.limits->allow(choice); });
    return std::move(found_);
  }

  std::vector<Grid> grids() const {
    std::vector<Grid> found;
    for (int64_t tp : divisors(request_.devices)) {
      if (tp > most_tensor_ranks() || !heads_share(tp)) continue;
      for (int64_t cp : context_sizes(request_.devices / tp, tp))
        for (int64_t pp : divisors(request_.devices / tp / cp))
          if (pp <= spec_.layers) found.push_back({request_.devices / tp / cp / pp, tp, pp, cp});
    }
    return found;
  }

 private:
  // Across nodes only when asked for by number.
  int64_t most_tensor_ranks() const {
    std::optional<int64_t> asked = request_.limits ? request_.limits->most("tp") : std::nullopt;
    return std::max(request_.machine.devices_per_node, asked.value_or(0));
  }

  bool heads_share(int64_t tp) const {
    bool keys = spec_.kv_heads == 0 || spec_.kv_heads % tp == 0 || tp % spec_.kv_heads == 0;
    return spec_.heads % tp == 0 && keys && spec_.ffn % tp == 0;
  }

  std::vector<int64_t> context_sizes(int64_t devices, int64_t tp) const {
    bool wanted = run_.batch.seq >= kLongSequence || request_.breadth == Breadth::wide;
    if (!wanted || run_.data.mask_documents) return {1};
    std::vector<int64_t> sizes;
    for (int64_t cp : {1, 2, 4, 8, 16, 32})
      if (devices % cp == 0 && run_.batch.seq % (2 * cp) == 0 &&
          (cp == 1 || run_.mesh.context == "ring" || heads_share(cp * tp)))
        sizes.push_back(cp);
    return sizes;
  }

  void add_batches(const Grid& grid) {
    int64_t each = run_.batch.sequences / grid.dp;
    for (int64_t microbatch = 1; microbatch <= each; microbatch *= 2) {
      if (each % microbatch != 0) break;
      if (microbatch > 1 && microbatch * run_.batch.seq / grid.cp > kMostTokensAtOnce) break;
      LayoutChoice choice{.dp = grid.dp, .tp = grid.tp, .pp = grid.pp, .cp = grid.cp, .microbatch = microbatch};
      add_schedules(choice, each / microbatch);
    }
  }

  void add_schedules(LayoutChoice choice, int64_t microbatches) {
    add_sequence(choice);
    if (choice.pp == 1) return;
    choice.schedule = "zb-h1";
    add_sequence(choice);
    if (2 * choice.pp <= spec_.layers) {
      choice.schedule = "zbv", choice.chunks = 2;
      add_sequence(choice);
    }
    choice.schedule = "interleaved";
    if (microbatches % choice.pp != 0) return;
    for (choice.chunks = 2; choice.chunks <= std::min(kMostChunks, spec_.layers / choice.pp); ++choice.chunks) {
      // Chunks of unequal length wait for the longest.
      bool equal = spec_.layers % choice.stages() == 0 || choice.chunks == 2;
      if (equal) add_sequence(choice);
    }
  }

  void add_sequence(LayoutChoice choice) {
    add_zero(choice);
    int64_t pieces = (choice.cp > 1 ? 2 * choice.cp : 1) * choice.tp;
    if (choice.tp == 1 || run_.batch.seq % pieces != 0) return;
    choice.sequence_parallel = true;
    add_zero(choice);
  }

  void add_zero(LayoutChoice choice) {
    add_recompute(choice);
    if (choice.dp * choice.cp == 1) return;
    bool deep = choice.pp == 1 || request_.breadth == Breadth::wide;
    int64_t within_node = request_.machine.devices_per_node / (choice.tp * choice.cp);
    for (choice.zero = 1; choice.zero <= (deep ? 3 : 2); ++choice.zero) {
      choice.zero_ranks = 0;
      add_recompute(choice);
      if (within_node <= 1 || within_node >= choice.dp || choice.dp % within_node != 0) continue;
      choice.zero_ranks = within_node;
      add_recompute(choice);
    }
  }

  void add_recompute(LayoutChoice choice) {
    for (const char* mode : {"none", "norms", "selective", "full"}) {
      choice.recompute = mode;
      found_.push_back(choice);
    }
  }

  const SpaceRequest& request_;
  const RunConfig& run_;
  const ModelSpec& spec_;
  std::vector<LayoutChoice> found_;
};

}  // namespace

LayoutChoice choice_of(const RunConfig& run) {
  return {.dp = run.mesh.dp,
          .tp = run.mesh.tp,
          .pp = run.mesh.pp,
          .cp = run.mesh.cp,
          .zero = run.mesh.zero,
          .zero_ranks = run.mesh.zero_ranks,
          .sequence_parallel = run.mesh.sequence_parallel,
          .schedule = run.pipeline.schedule,
          .chunks = run.pipeline.chunks,
          .microbatch = run.batch.microbatch,
          .recompute = run.train.recompute};
}

RunConfig with_choice(const RunConfig& run, const LayoutChoice& choice) {
  RunConfig config = run;
  config.mesh.dp = choice.dp, config.mesh.tp = choice.tp, config.mesh.pp = choice.pp, config.mesh.cp = choice.cp;
  config.mesh.zero = choice.zero, config.mesh.zero_ranks = choice.zero_ranks;
  config.mesh.sequence_parallel = choice.sequence_parallel;
  config.pipeline = {.schedule = choice.schedule, .chunks = choice.chunks, .file = {}, .layers = {}};
  config.batch.microbatch = choice.microbatch;
  config.train.recompute = choice.recompute;
  return config;
}

std::string overrides_text(const LayoutChoice& choice) {
  std::string text = fmt::format("mesh.dp={} mesh.tp={} mesh.pp={}", choice.dp, choice.tp, choice.pp);
  if (choice.cp > 1) text += fmt::format(" mesh.cp={}", choice.cp);
  text += fmt::format(" mesh.zero={}", choice.zero);
  if (choice.zero_ranks > 0) text += fmt::format(" mesh.zero_ranks={}", choice.zero_ranks);
  if (choice.tp > 1) text += fmt::format(" mesh.sequence_parallel={}", choice.sequence_parallel);
  if (choice.pp > 1) text += fmt::format(" pipeline.schedule={}", choice.schedule);
  if (choice.chunks > 1) text += fmt::format(" pipeline.chunks={}", choice.chunks);
  return text + fmt::format(" batch.microbatch={} train.recompute={}", choice.microbatch, choice.recompute);
}

std::vector<LayoutChoice> layouts_of(const SpaceRequest& request) {
  return Space(request).all();
}

NearBatches near_batches(const SpaceRequest& request) {
  NearBatches near;
  for (const Grid& grid : Space(request).grids()) {
    int64_t below = request.run.batch.sequences / grid.dp * grid.dp, above = below + grid.dp;
    near.below = std::max(near.below, below);
    if (near.above == 0 || above < near.above) near.above = above;
  }
  return near;
}

}  // namespace sextant
