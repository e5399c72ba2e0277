#include "search/search_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/layout_rules.h"
#include "schedule/schedules.h"
#include "search/layout_limits.h"

namespace sextant {

namespace {

constexpr int64_t kLongSequence = 16384;        // from here on context parallelism is usual
constexpr int64_t kMostTokensAtOnce = 1 << 17;  // of a microbatch on one rank
constexpr int64_t kMostChunks = 16;
constexpr int64_t kEnds = 2;  // embedding and head, which may stand in place of a layer
// Chunks of unequal length wait for the longest, which may be so much longer than the mean.
constexpr double kLongestChunk = 1.1;

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

// The keys of [mesh] that a search decides.
void copy_layout(const MeshSection& from, MeshSection& to) {
  for (const MeshAxis& axis : kMeshAxes) to.*axis.size = axis.size_in(from);
  to.ep = from.ep, to.etp = from.etp;
  to.zero = from.zero, to.zero_ranks = from.zero_ranks;
  to.sequence_parallel = from.sequence_parallel;
}

// `deferred_gradients` is what the config has; schedules that defer none take the default.
void set_choice(const LayoutChoice& choice, RunConfig& config, DeferredGradients deferred_gradients) {
  copy_layout(choice.mesh, config.mesh);
  config.pipeline.schedule = choice.schedule, config.pipeline.chunks = choice.chunks;
  config.pipeline.file = {}, config.pipeline.layers = {};
  const ScheduleDef* schedule = find_schedule(choice.schedule);
  config.pipeline.deferred_gradients =
      schedule && schedule->defers_weights ? deferred_gradients : PipelineSection{}.deferred_gradients;
  config.batch.microbatch = choice.microbatch;
  config.train.recompute = choice.recompute;
}

class Space {
 public:
  explicit Space(const SpaceRequest& request)
      : request_(request), run_(request.run), spec_(request.spec), tried_(request.run) {}

  std::vector<LayoutChoice> all() {
    for (const MeshSection& mesh : meshes())
      if (run_.batch.sequences % mesh.dp == 0) add_batches(mesh);
    if (request_.limits)
      std::erase_if(found_, [&](const LayoutChoice& choice) { return !request_.limits->allow(choice); });
    return std::move(found_);
  }

  std::vector<MeshSection> meshes() {
    std::vector<MeshSection> found;
    for (const MeshSection& grid : grids())
      for (const MeshSection& mesh : with_experts(grid))
        if (is_possible(mesh)) found.push_back(mesh);
    return found;
  }

 private:
  std::vector<MeshSection> grids() const {
    std::vector<MeshSection> found;
    for (int64_t tp : divisors(request_.devices)) {
      if (tp > most_tensor_ranks()) continue;
      for (int64_t cp : context_sizes(request_.devices / tp))
        for (int64_t pp : divisors(request_.devices / tp / cp))
          if (pp <= spec_.layers)
            found.push_back({.dp = request_.devices / tp / cp / pp,
                             .tp = tp,
                             .pp = pp,
                             .cp = cp,
                             .ep = run_.mesh.ep,
                             .etp = run_.mesh.etp});
    }
    return found;
  }

  // Across nodes only when asked for by number, or where the config itself does it.
  int64_t most_tensor_ranks() const {
    std::optional<int64_t> asked =
        request_.limits ? request_.limits->most(axis_of(&MeshSection::tp).name()) : std::nullopt;
    return std::max({request_.machine.devices_per_node, asked.value_or(0), run_.mesh.tp});
  }

  // How ranks of a grid may have experts: divided among so many, whole (parallel folding) or in parts along with the
  // rest of a layer. A config that says how, is kept to.
  std::vector<MeshSection> with_experts(const MeshSection& grid) const {
    bool asked = run_.given("mesh.ep") || run_.given("mesh.etp") || run_.mesh.ep > 1;
    if (!spec_.experts || asked) return {grid};
    std::vector<MeshSection> found;
    for (int64_t ep : divisors(spec_.experts->count)) {
      if (ep > grid.dp * grid.cp * grid.tp) break;
      MeshSection mesh = grid;
      mesh.ep = ep;
      if (expert_mesh_of(mesh).error.empty()) found.push_back(mesh);
      mesh.etp = 1;
      if (grid.tp > 1 && expert_mesh_of(mesh).error.empty()) found.push_back(mesh);
    }
    return found;
  }

  bool is_possible(const MeshSection& mesh) {
    set_choice({.mesh = mesh}, tried_, run_.pipeline.deferred_gradients);
    return is_mesh_possible(tried_, spec_);
  }

  bool is_possible(const LayoutChoice& choice) {
    set_choice(choice, tried_, run_.pipeline.deferred_gradients);
    return layout_problems(tried_, spec_).empty();
  }

  std::vector<int64_t> context_sizes(int64_t devices) const {
    bool wanted = run_.batch.seq >= kLongSequence || request_.breadth == Breadth::wide;
    if (!wanted) return {1};
    std::vector<int64_t> sizes;
    for (int64_t cp : {1, 2, 4, 8, 16, 32})
      if (devices % cp == 0) sizes.push_back(cp);
    return sizes;
  }

  void add_batches(const MeshSection& grid) {
    int64_t each = run_.batch.sequences / grid.dp;
    for (int64_t microbatch = 1; microbatch <= each; microbatch *= 2) {
      if (each % microbatch != 0) break;
      if (microbatch > 1 && microbatch * run_.batch.seq / grid.cp > kMostTokensAtOnce) break;
      LayoutChoice choice{.mesh = grid, .microbatch = microbatch};
      add_schedules(choice, each / microbatch);
    }
  }

  void add_schedules(LayoutChoice choice, int64_t microbatches) {
    add_sequence(choice);
    if (choice.mesh.ep > 1 && microbatches >= 2) {
      choice.schedule = ScheduleKind::combined_1f1b;
      add_sequence(choice);
    }
    if (choice.mesh.pp == 1) return;
    choice.schedule = ScheduleKind::zb_h1;
    add_sequence(choice);
    if (2 * choice.mesh.pp <= spec_.layers) {
      choice.schedule = ScheduleKind::zbv, choice.chunks = 2;
      add_sequence(choice);
      choice.schedule = ScheduleKind::dualpipev;
      if (microbatches >= 2 * choice.mesh.pp) add_sequence(choice);
    }
    choice.schedule = ScheduleKind::interleaved;
    if (microbatches % choice.mesh.pp != 0) return;
    for (choice.chunks = 2; choice.chunks <= kMostChunks && choice.stages() <= spec_.layers + kEnds; ++choice.chunks)
      if (choice.chunks == 2 || divides_well(choice.stages())) add_sequence(choice);
  }

  bool divides_well(int64_t stages) const {
    auto longest_of = [&](int64_t units) {
      int64_t longest = (units + stages - 1) / stages;
      return static_cast<double>(longest * stages) / static_cast<double>(units);
    };
    return std::min(longest_of(spec_.layers), longest_of(spec_.layers + kEnds)) <= kLongestChunk;
  }

  void add_sequence(LayoutChoice choice) {
    add_zero(choice);
    if (choice.mesh.tp == 1) return;
    choice.mesh.sequence_parallel = true;
    add_zero(choice);
  }

  void add_zero(LayoutChoice choice) {
    add_recompute(choice);
    if (choice.mesh.dp * choice.mesh.cp == 1) return;
    // ZeRO-3 gathers weights from shards on the device.
    bool deep = (choice.mesh.pp == 1 || request_.breadth == Breadth::wide) && !run_.offload.working_weights;
    int64_t within_node = request_.machine.devices_per_node / (choice.mesh.tp * choice.mesh.cp);
    for (choice.mesh.zero = 1; choice.mesh.zero <= (deep ? 3 : 2); ++choice.mesh.zero) {
      choice.mesh.zero_ranks = 0;
      add_recompute(choice);
      if (within_node <= 1 || within_node >= choice.mesh.dp || choice.mesh.dp % within_node != 0) continue;
      choice.mesh.zero_ranks = within_node;
      add_recompute(choice);
    }
  }

  void add_recompute(LayoutChoice choice) {
    for (const RecomputeChoice& mode : kRecomputeModes) {
      if (!mode.is_searched) continue;
      choice.recompute = mode.value;
      if (is_possible(choice)) found_.push_back(choice);
    }
  }

  const SpaceRequest& request_;
  const RunConfig& run_;
  const ModelSpec& spec_;
  RunConfig tried_;  // with the layout that is asked about
  std::vector<LayoutChoice> found_;
};

}  // namespace

LayoutChoice choice_of(const RunConfig& run) {
  MeshSection mesh;
  copy_layout(run.mesh, mesh);
  return {.mesh = mesh,
          .schedule = run.pipeline.schedule,
          .chunks = run.pipeline.chunks,
          .microbatch = run.batch.microbatch,
          .recompute = run.train.recompute};
}

RunConfig with_choice(const RunConfig& run, const LayoutChoice& choice) {
  RunConfig config = run;
  set_choice(choice, config, run.pipeline.deferred_gradients);
  return config;
}

std::string overrides_text(const LayoutChoice& choice) {
  std::string text;
  for (const MeshAxis& axis : kMeshAxes)
    if (axis.always_told || axis.size_in(choice.mesh) > 1)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.key, axis.size_in(choice.mesh));
  if (choice.mesh.ep > 1) text += fmt::format(" mesh.ep={}", choice.mesh.ep);
  if (choice.mesh.etp > 0) text += fmt::format(" mesh.etp={}", choice.mesh.etp);
  text += fmt::format(" mesh.zero={}", choice.mesh.zero);
  if (choice.mesh.zero_ranks > 0) text += fmt::format(" mesh.zero_ranks={}", choice.mesh.zero_ranks);
  if (choice.mesh.tp > 1) text += fmt::format(" mesh.sequence_parallel={}", choice.mesh.sequence_parallel);
  if (choice.mesh.pp > 1 || choice.schedule != ScheduleKind::one_f_one_b)
    text += fmt::format(" pipeline.schedule={}", word_of(choice.schedule));
  if (choice.chunks > 1) text += fmt::format(" pipeline.chunks={}", choice.chunks);
  return text + fmt::format(" batch.microbatch={} train.recompute={}", choice.microbatch, word_of(choice.recompute));
}

std::vector<LayoutChoice> layouts_of(const SpaceRequest& request) {
  return Space(request).all();
}

NearBatches near_batches(const SpaceRequest& request) {
  NearBatches near;
  for (const MeshSection& mesh : Space(request).meshes()) {
    int64_t below = request.run.batch.sequences / mesh.dp * mesh.dp, above = below + mesh.dp;
    near.below = std::max(near.below, below);
    if (near.above == 0 || above < near.above) near.above = above;
  }
  return near;
}

}  // namespace sextant
