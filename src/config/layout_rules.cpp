#include "config/layout_rules.h"
#include "base/toml_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/complaints.h"
#include "config/mesh_axes.h"
#include "config/microbatches.h"
#include "config/resolve.h"
#include "config/ring_order.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

// Every rank must get whole positions: the ring's zigzag cuts a sequence into 2·cp pieces, stripes into cp, sequence
// parallelism each into tp.
void check_sequence_split(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  bool zigzag = mesh.cp > 1 && mesh.context == ContextMode::ring && ring_order_of(run, spec) == RingOrder::zigzag;
  int64_t pieces = zigzag ? 2 * mesh.cp : mesh.cp;
  bool experts_split = spec.experts && mesh.etp > 0 && mesh.etp < mesh.tp;  // they take a part of the tokens each
  if (mesh.sequence_parallel || experts_split) pieces *= mesh.tp;
  if (run.batch.seq % pieces != 0)
    complaints.add(run, {"mesh.cp", "mesh.tp", "batch.seq"},
                   {.got = fmt::format("seq {} cannot be cut into {} equal pieces", run.batch.seq, pieces),
                    .expected = fmt::format("a multiple of {}", pieces)});
}

void check_ring_order(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  if (mesh.ring_order != RingOrder::automatic && mesh.context != ContextMode::ring)
    complaints.add(run, {"mesh.ring_order", "mesh.context"},
                   {.got = fmt::format("an order of the ring, and context {}", toml_quoted(word_of(mesh.context))),
                    .expected = "mesh.context = \"ring\", or leave the order out"});
  if (mesh.ring_order != RingOrder::striped || mesh.cp == 1) return;
  if (std::string why = striping_problem(run, spec); !why.empty())
    complaints.add(run, {"mesh.ring_order", "train.precision"},
                   {.got = std::move(why), .expected = "\"zigzag\" or \"auto\""});
}

void check_heads_split(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  int64_t parts = mesh.tp * (mesh.context == ContextMode::ulysses ? mesh.cp : 1);
  if (spec.heads > 0 && spec.heads % parts != 0)
    complaints.add(run, {"mesh.tp", "mesh.cp", "model.heads"},
                   {.got = fmt::format("{} heads cannot be shared by {} ranks", spec.heads, parts),
                    .expected = fmt::format("a divisor of {}", spec.heads)});
  if (spec.kv_heads > 0 && spec.kv_heads % parts != 0 && parts % spec.kv_heads != 0)
    complaints.add(run, {"mesh.tp", "mesh.cp", "model.kv_heads"},
                   {.got = fmt::format("{} key-value heads cannot be shared by {} ranks", spec.kv_heads, parts),
                    .expected = fmt::format("a divisor or a multiple of {}", spec.kv_heads)});
  int64_t etp = mesh.etp > 0 ? mesh.etp : mesh.tp;
  for (const auto& [field, width, of] : mlp_widths(spec)) {
    int64_t ranks = of == MlpOf::experts ? etp : mesh.tp;
    if (width > 0 && width % ranks != 0)
      complaints.add(run, {ranks == mesh.tp ? "mesh.tp" : "mesh.etp", fmt::format("model.{}", field)},
                     {.got = fmt::format("{} {} cannot be shared by {} ranks", field, width, ranks),
                      .expected = fmt::format("a divisor of {}", width)});
  }
}

void check_experts_split(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  if (!spec.experts) {
    if (mesh.ep > 1)
      complaints.add(run, {"mesh.ep"},
                     {.got = fmt::format("ep is {}, but the model has no experts", mesh.ep), .expected = "1"});
    if (mesh.etp > 0)
      complaints.add(run, {"mesh.etp"},
                     {.got = fmt::format("etp is {}, but the model has no experts", mesh.etp), .expected = "0"});
    if (mesh.expert_dispatch != ExpertDispatch::automatic)
      complaints.add(run, {"mesh.expert_dispatch"}, {.got = "the model has no experts", .expected = "\"auto\""});
    return;
  }
  if (ExpertMesh experts = expert_mesh_of(mesh); !experts.error.empty()) {
    const bool cut = mesh.tp % experts.etp == 0;  // else it is the width of experts that does not fit
    complaints.add(run,
                   cut ? std::vector<std::string>{"mesh.ep", "mesh.etp", "mesh.tp", "mesh.cp", "mesh.dp"}
                       : std::vector<std::string>{"mesh.etp", "mesh.tp"},
                   {.got = experts.error, .expected = experts.expected});
  }
  if (run.model.given<&ExpertsSpec::drop_policy>() && spec.experts->drop_above == 0)
    complaints.add(run, {"model.experts.drop_policy"},
                   {.got = "nothing is dropped", .expected = "no such key, or model.experts.drop_above above 0"});
  if (mesh.expert_capacity > 0 && mesh.expert_capacity < 1)
    complaints.add(
        run, {"mesh.expert_capacity"},
        {.got = fmt::format("{} times the balanced load is less than any routing sends", mesh.expert_capacity),
         .expected = "1 or more, or 0 for the most that any routing sends"});
  if (spec.experts->count % mesh.ep != 0)
    complaints.add(run, {"mesh.ep", "model.experts.count"},
                   {.got = fmt::format("{} experts cannot be divided among {} ranks", spec.experts->count, mesh.ep),
                    .expected = fmt::format("a divisor of {}", spec.experts->count)});
}

std::vector<std::string_view> schedules_of_several_chunks() {
  std::vector<std::string_view> names;
  for (const ScheduleDef& def : kSchedules)
    if (def.chunks.most != 1) names.push_back(def.name);
  return names;
}

std::vector<std::string_view> deferring_schedules() {
  std::vector<std::string_view> names;
  for (const ScheduleDef& def : kSchedules)
    if (def.defers_weights) names.push_back(def.name);
  return names;
}

}  // namespace

int64_t most_microbatches(int64_t stages) {
  constexpr int64_t kMost = 1 << 16, kMostOfAllStages = 1 << 21;
  return std::clamp(kMostOfAllStages / std::max<int64_t>(stages, 1), int64_t{1}, kMost);
}

void check_mesh(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  double ranks = ranks_as_double(mesh);
  if (ranks > static_cast<double>(kMaxRanks))
    complaints.add(run, axis_keys(),
                   {.got = fmt::format("{} makes {:.0f} ranks", sizes_text(mesh), ranks),
                    .expected = fmt::format("at most {}", kMaxRanks)});
  check_experts_split(run, spec, complaints);
  const ScheduleDef* schedule = find_schedule(run.pipeline.schedule);
  int64_t chunks = run.pipeline.chunks / (schedule ? schedule->copies() : 1);  // of one copy of the model
  int64_t stages = mesh.pp * chunks;
  bool given = !run.pipeline.layers.empty();  // looked at where stages are made: its ends may have none
  if (spec.layers > 0 && !given && stages > spec.layers + 2)
    complaints.add(
        run, {"mesh.pp", "pipeline.chunks", "model.layers"},
        {.got = fmt::format("{} stages × {} chunks are more than the model's {} layers", mesh.pp, chunks, spec.layers),
         .expected = "a layer or more in every chunk but the first and the last"});
  check_sequence_split(run, spec, complaints);
  check_ring_order(run, spec, complaints);
  if (mesh.zero_ranks > 0 && mesh.dp % mesh.zero_ranks != 0)
    complaints.add(run, {"mesh.zero_ranks", "mesh.dp"},
                   {.got = fmt::format("zero_ranks {} does not divide dp {}", mesh.zero_ranks, mesh.dp),
                    .expected = fmt::format("a divisor of {}, or 0", mesh.dp)});
  if (mesh.zero_ranks > 0 && mesh.zero == 0)
    complaints.add(run, {"mesh.zero_ranks", "mesh.zero"},
                   {.got = "zero_ranks is given, but zero is 0", .expected = "mesh.zero = 1, 2 or 3"});
  check_heads_split(run, spec, complaints);
}

void check_recompute(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  if (choice_of(run.train.recompute).needs_latent_attention && !spec.latent)
    complaints.add(run, {"train.recompute", "model.architecture", "model.preset", "model.from"},
                   {.got = fmt::format("{} has no latent attention", spec.architecture),
                    .expected = "selective, which computes everything else again that latent does"});
}

void check_pipeline(const RunConfig& run, Complaints& complaints) {
  const auto& [schedule, chunks, file, layers, deferred_gradients] = run.pipeline;
  const ScheduleDef* def = find_schedule(schedule);
  if (def && !def->chunks.allows(chunks) && def->chunks.least == def->chunks.most)
    complaints.add(
        run, {"pipeline.chunks", "pipeline.schedule"},
        {.got = fmt::format("{} requires pipeline.chunks={}, got {}", word_of(schedule), def->chunks.least, chunks),
         .expected = fmt::format("{}", def->chunks.least),
         .hint =
             def->chunks.most > 1 ? "" : fmt::format("{} take more", fmt::join(schedules_of_several_chunks(), ", "))});
  if (schedule == ScheduleKind::from_file && file.empty())
    complaints.add(run, {"pipeline.schedule", "pipeline.file"},
                   {.got = "csv names no file", .expected = "pipeline.file with the path of the schedule"});
  if (schedule != ScheduleKind::from_file && !file.empty())
    complaints.add(run, {"pipeline.file", "pipeline.schedule"},
                   {.got = fmt::format("a file is given, but the schedule is {}", word_of(schedule)),
                    .expected = "pipeline.schedule = \"csv\""});
  if (deferred_gradients != DeferredGradients::all && def && !def->defers_weights)
    complaints.add(
        run, {"pipeline.deferred_gradients", "pipeline.schedule"},
        {.got = fmt::format("{} defers no weight gradients", word_of(schedule)),
         .expected = fmt::format("\"all\", or one of the schedules {}", fmt::join(deferring_schedules(), ", "))});
}

void check_batch(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const auto& [sequences, microbatch, seq] = run.batch;
  int64_t at_once = microbatch * run.mesh.dp;
  int64_t microbatches = microbatches_per_rank(run, run.mesh.dp), stages = run.mesh.pp * run.pipeline.chunks;
  if (microbatches > most_microbatches(stages))
    complaints.add(run, {"batch.sequences", "batch.microbatch", "mesh.dp", "mesh.pp"},
                   {.got = fmt::format("sequences {} by microbatch {} × dp {} makes {} microbatches in a step",
                                       sequences, microbatch, run.mesh.dp, microbatches),
                    .expected = fmt::format("at most {} on {} pipeline stages", most_microbatches(stages), stages),
                    .hint = "take fewer sequences, or a larger batch.microbatch or mesh.dp"});
  if (is_reproducible_on_meshes(run) && sequences % microbatch != 0)
    complaints.add(run, {"batch.sequences", "batch.microbatch"},
                   {.got = fmt::format("sequences {} is not a multiple of microbatch {}", sequences, microbatch),
                    .expected = fmt::format("a multiple of {}", microbatch)});
  if (!is_reproducible_on_meshes(run) && sequences % at_once != 0)
    complaints.add(run, {"batch.sequences", "batch.microbatch", "mesh.dp"},
                   {.got = fmt::format("sequences {} is not a multiple of microbatch {} × dp {}", sequences, microbatch,
                                       run.mesh.dp),
                    .expected = fmt::format("a multiple of {}", at_once)});
  if (spec.max_seq > 0 && seq > spec.max_seq)
    complaints.add(run, {"batch.seq", "model.max_seq"},
                   {.got = fmt::format("seq {} is longer than the model's max_seq {}", seq, spec.max_seq),
                    .expected = fmt::format("at most {}", spec.max_seq)});
  if (seq <= spec.mtp_depths)
    complaints.add(
        run, {"batch.seq", "model.mtp.depths"},
        {.got = fmt::format("sequences of {} have no target {} tokens behind the next one", seq, spec.mtp_depths),
         .expected = fmt::format("a seq above model.mtp.depths {}", spec.mtp_depths)});
}

bool is_mesh_possible(const RunConfig& run, const ModelSpec& spec) {
  Complaints complaints;
  check_mesh(run, spec, complaints);
  return complaints.list().empty();
}

std::vector<Complaint> layout_problems(const RunConfig& run, const ModelSpec& spec) {
  Complaints complaints;
  check_mesh(run, spec, complaints);
  check_recompute(run, spec, complaints);
  check_pipeline(run, complaints);
  check_batch(run, spec, complaints);
  return complaints.list();
}

}  // namespace sextant
