#include "config/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/toml_document.h"
#include "config/check_reproducible.h"
#include "config/complaints.h"
#include "config/mesh_axes.h"
#include "config/microbatches.h"
#include "config/resolve.h"
#include "config/ring_order.h"
#include "models/spec.h"
#include "optim/optimizer.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

void check_name(const RunConfig& run, Complaints& complaints) {
  bool one_part = run.name.find('/') == std::string::npos && run.name != "." && run.name != "..";
  if (!one_part)
    complaints.add(run, {"name"},
                   {.got = "got " + toml_quoted(run.name), .expected = "a name for a directory, without '/'"});
}

// Every rank must get whole positions: the ring's zigzag cuts a sequence into 2·cp pieces, stripes into cp, sequence
// parallelism each into tp.
void check_sequence_split(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  bool zigzag = mesh.cp > 1 && mesh.context == "ring" && ring_order_of(run, spec) == RingOrder::zigzag;
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
  if (mesh.ring_order != "auto" && mesh.context != "ring")
    complaints.add(run, {"mesh.ring_order", "mesh.context"},
                   {.got = fmt::format("an order of the ring, and context {}", toml_quoted(mesh.context)),
                    .expected = "mesh.context = \"ring\", or leave the order out"});
  if (mesh.ring_order != "striped" || mesh.cp == 1) return;
  if (std::string why = against_stripes(run, spec); !why.empty())
    complaints.add(run, {"mesh.ring_order", "train.precision"},
                   {.got = std::move(why), .expected = "\"zigzag\" or \"auto\""});
}

void check_heads_split(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const MeshSection& mesh = run.mesh;
  int64_t parts = mesh.tp * (mesh.context == "ulysses" ? mesh.cp : 1);
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
    if (mesh.expert_dispatch != "auto")
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
  if (run.model.experts.drop_policy && spec.experts->drop_above == 0)
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
  if (run.train.recompute == "latent" && !spec.latent)
    complaints.add(run, {"train.recompute", "model.architecture", "model.preset", "model.from"},
                   {.got = fmt::format("{} has no latent attention", spec.architecture),
                    .expected = "selective, which computes everything else again that latent does"});
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

void check_pipeline(const RunConfig& run, Complaints& complaints) {
  const auto& [schedule, chunks, file, layers, deferred_gradients] = run.pipeline;
  const ScheduleDef* def = find_schedule(schedule);
  if (def && !def->chunks.allows(chunks) && def->chunks.least == def->chunks.most)
    complaints.add(
        run, {"pipeline.chunks", "pipeline.schedule"},
        {.got = fmt::format("{} requires pipeline.chunks={}, got {}", schedule, def->chunks.least, chunks),
         .expected = fmt::format("{}", def->chunks.least),
         .hint =
             def->chunks.most > 1 ? "" : fmt::format("{} take more", fmt::join(schedules_of_several_chunks(), ", "))});
  if (schedule == kScheduleFromFile && file.empty())
    complaints.add(run, {"pipeline.schedule", "pipeline.file"},
                   {.got = "csv names no file", .expected = "pipeline.file with the path of the schedule"});
  if (schedule != kScheduleFromFile && !file.empty())
    complaints.add(run, {"pipeline.file", "pipeline.schedule"},
                   {.got = fmt::format("a file is given, but the schedule is {}", schedule),
                    .expected = "pipeline.schedule = \"csv\""});
  if (deferred_gradients != "all" && def && !def->defers_weights)
    complaints.add(
        run, {"pipeline.deferred_gradients", "pipeline.schedule"},
        {.got = fmt::format("{} defers no weight gradients", schedule),
         .expected = fmt::format("\"all\", or one of the schedules {}", fmt::join(deferring_schedules(), ", "))});
}

void check_data(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  const DataSection& data = run.data;
  if (data.train.empty())
    complaints.add(run, {"data.train"}, {.got = "names no data", .expected = "files, or \"stories\""});
  if (!data.weights.empty() && data.weights.size() != data.train.size())
    complaints.add(run, {"data.weights", "data.train"},
                   {.got = fmt::format("{} weight{} for {} entr{} of data.train", data.weights.size(),
                                       data.weights.size() == 1 ? "" : "s", data.train.size(),
                                       data.train.size() == 1 ? "y" : "ies"),
                    .expected = "one for each"});
  if (!data.validation.empty() && run.given("data.validation_fraction"))
    complaints.add(run, {"data.validation_fraction", "data.validation"},
                   {.got = "is not used, because data.validation names files", .expected = "one of the two"});
  if (run.given("data.validation_split") && !data.holds_out_part())
    complaints.add(run, {"data.validation_split", "data.validation", "data.validation_fraction"},
                   {.got = "is not used, because no part of the training data is held out",
                    .expected = "a data.validation_fraction above 0, without data.validation"});
  bool nothing_held_back = data.validation.empty() && data.validation_fraction == 0;
  if (nothing_held_back && run.given("train.eval_every") && run.train.eval_every > 0)
    complaints.add(run, {"train.eval_every", "data.validation", "data.validation_fraction"},
                   {.got = "there is no validation data to measure",
                    .expected = "data.validation, or a data.validation_fraction above 0"});
  if (run.given("data.tokenizer_vocab") && (!data.tokenizer.empty() || (run.model.from && !run.model.other_tokenizer)))
    complaints.add(run, {"data.tokenizer_vocab", "data.tokenizer", "model.from"},
                   {.got = fmt::format("is not used, because {} brings a tokenizer",
                                       data.tokenizer.empty() ? "model.from" : "data.tokenizer"),
                    .expected = "one of the two"});
  bool tokens = data.format.starts_with("tokens-") || data.format == "megatron";
  if (tokens && spec.vocab == 0 && data.tokenizer.empty())
    complaints.add(run, {"data.format", "data.tokenizer", "model.vocab", "model.preset", "model.from"},
                   {.got = fmt::format("{} files do not contain the size of the vocabulary", data.format),
                    .expected = "model.vocab or data.tokenizer"});
}

void check_documents(const RunConfig& run, Complaints& complaints) {
  // Text needs it anyway, but a tokenizer that is trained brings its own. Documents of token files are told apart by
  // it.
  bool tokens = run.data.format.starts_with("tokens-") || run.data.format == "megatron";
  bool trained = run.data.tokenizer.empty() && !run.model.from;
  if (run.data.end_of_text && !run.data.mask_documents && (tokens ? !run.data.holds_out_documents() : trained))
    complaints.add(run, {"data.end_of_text", "data.mask_documents"},
                   {.got = "end_of_text is given, but nothing asks for it", .expected = "data.mask_documents = true"});
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

// Rounded to bf16 and then added up, gradients would lose what small ones say.
void check_expert_gradients(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  if (run.train.expert_gradients == "f32") return;
  if (!spec.experts)
    complaints.add(run, {"train.expert_gradients"},
                   {.got = fmt::format("{} has no experts", spec.architecture), .expected = "\"f32\""});
  if (run.train.precision == "fp16")
    complaints.add(run, {"train.expert_gradients", "train.precision"},
                   {.got = "gradients in bf16 of a run in fp16", .expected = "\"f32\", or train.precision = \"bf16\""});
  const MeshSection& mesh = run.mesh;
  int64_t summands = run.batch.sequences / run.batch.microbatch * mesh.cp;
  if (summands > 1 || mesh.ep > 1)
    complaints.add(
        run, {"train.expert_gradients", "batch.microbatch"},
        {.got = fmt::format("gradients in {} would be added up over microbatches or ranks", run.train.expert_gradients),
         .expected = "one microbatch in a step, and no data, context or expert parallelism; or \"f32\""});
  if (run.optimizer.name != "adamw")
    complaints.add(
        run, {"train.expert_gradients", "optimizer.name"},
        {.got = fmt::format("{} reads gradients in f32", run.optimizer.name), .expected = "adamw, or \"f32\""});
}

void check_master_weights(const RunConfig& run, Complaints& complaints) {
  if (run.train.master_weights == "bf16" && run.train.precision == "fp16")
    complaints.add(run, {"train.master_weights", "train.precision"},
                   {.got = "weights that are bf16 numbers have not the range of fp16", .expected = "\"f32\", or bf16"});
  if (run.train.master_weights == "bf16" && run.optimizer.name != "adamw")
    complaints.add(run, {"train.master_weights", "optimizer.name"},
                   {.got = fmt::format("{} does not round weights at random", run.optimizer.name),
                    .expected = "adamw, or \"f32\""});
}

void check_offload(const RunConfig& run, Complaints& complaints) {
  const OffloadSection& offload = run.offload;
  if (offload.to == "nvme" && !offload.optimizer)
    complaints.add(run, {"offload.to", "offload.optimizer"},
                   {.got = "NVMe keeps optimizer state, which stays on the device",
                    .expected = "offload.optimizer = true too, or offload.to = \"host\""});
  if (offload.to == "nvme" && offload.path.empty())
    complaints.add(run, {"offload.path"},
                   {.got = "there is no directory for what is kept on NVMe",
                    .expected = "a directory on a local disk, as in offload.path = \"/local/nvme\""});
  if (offload.weights && !offload.optimizer)
    complaints.add(run, {"offload.weights", "offload.optimizer"},
                   {.got = "weights are offloaded, and the update that reads them runs on the device",
                    .expected = "offload.optimizer = true too"});
  if (offload.working_weights && !offload.optimizer)
    complaints.add(run, {"offload.working_weights", "offload.optimizer"},
                   {.got = "weights are kept on the host, and the update that writes them runs on the device",
                    .expected = "offload.optimizer = true too"});
  if (offload.working_weights && run.mesh.zero >= 3)
    complaints.add(run, {"offload.working_weights", "mesh.zero"},
                   {.got = "ZeRO-3 gathers weights from shards on the device, which are not streamed from the host",
                    .expected = "mesh.zero below 3, or offload.working_weights = false"});
  if (!offload.optimizer) return;
  if (run.train.precision == "fp16")
    complaints.add(run, {"offload.optimizer", "train.precision"},
                   {.got = "master weights of fp16 are not updated on the host yet",
                    .expected = "train.precision = \"bf16\", or offload.optimizer = false"});
  if (run.optimizer.name != "adamw")
    complaints.add(run, {"offload.optimizer", "optimizer.name"},
                   {.got = fmt::format("the step of {} does not run on the host", run.optimizer.name),
                    .expected = "adamw, or offload.optimizer = false"});
  if (run.optimizer.state.value_or("f32") != "f32")
    complaints.add(run, {"offload.optimizer", "optimizer.state"},
                   {.got = fmt::format("states in {} are not updated on the host", *run.optimizer.state),
                    .expected = "optimizer.state = \"f32\", or offload.optimizer = false"});
  if (run.train.master_weights != "f32")
    complaints.add(run, {"offload.optimizer", "train.master_weights"},
                   {.got = "the host does not round weights at random",
                    .expected = "train.master_weights = \"f32\", or offload.optimizer = false"});
}

void check_loss_scale(const RunConfig& run, Complaints& complaints) {
  const LossScaleSection& scale = run.train.loss_scale;
  const double initial = run.train.first_loss_scale();
  for (std::string_view name : {"growth_interval", "growth_factor", "backoff", "minimum"})
    if (std::string key = fmt::format("train.loss_scale.{}", name); run.given(key) && initial == 0)
      complaints.add(run, {key, "train.loss_scale.initial"},
                     {.got = "losses are not scaled", .expected = "no such key, or train.loss_scale.initial above 0"});
  if (initial == 0) return;
  if (scale.backoff >= 1)
    complaints.add(run, {"train.loss_scale.backoff"},
                   {.got = fmt::format("{}, by which the scale would not get smaller", scale.backoff),
                    .expected = "a number below 1"});
  if (initial < scale.minimum || initial > 0x1p127)
    complaints.add(run, {"train.loss_scale.initial", "train.loss_scale.minimum"},
                   {.got = fmt::format("initial {}", initial),
                    .expected = fmt::format("from the minimum, {}, to 2^127", scale.minimum)});
  if (run.mesh.expert_capacity > 0)
    complaints.add(
        run, {run.train.loss_scale.initial ? "train.loss_scale.initial" : "train.precision", "mesh.expert_capacity"},
        {.got = "steps that are repeated for rows on their way to experts do not scale losses",
         .expected = "mesh.expert_capacity = 0"});
}

// A setting that the optimizer does not read would be a choice without effect.
void check_optimizer_settings(const RunConfig& run, Complaints& complaints) {
  const OptimizerDef* def = find_optimizer(run.optimizer.name);
  if (!def) return;
  for_each_setting([&](std::string_view name, auto member) {
    std::string key = fmt::format("optimizer.{}", name);
    if (run.given(key) && !(def->defaults.*member))
      complaints.add(run, {key, "optimizer.name"},
                     {.got = fmt::format("{} does not read {}", def->name, name),
                      .expected = fmt::format("one of its settings: {}", fmt::join(settings_of(*def), ", "))});
  });
}

void check_optimizer(const RunConfig& run, Complaints& complaints) {
  check_optimizer_settings(run, complaints);
  const OptimizerSection& optimizer = run.optimizer;
  if (optimizer.min_lr > optimizer.lr)
    complaints.add(run, {"optimizer.min_lr", "optimizer.lr"},
                   {.got = fmt::format("min_lr {} is above lr {}", optimizer.min_lr, optimizer.lr),
                    .expected = fmt::format("at most {}", optimizer.lr)});
  if (optimizer.warmup > run.train.steps)
    complaints.add(
        run, {"optimizer.warmup", "train.steps"},
        {.got = fmt::format("warmup {} is longer than the {} steps of the run", optimizer.warmup, run.train.steps),
         .expected = fmt::format("at most {}", run.train.steps)});
  bool wsd = optimizer.schedule == "wsd";
  if (wsd && optimizer.decay == 0)
    complaints.add(run, {"optimizer.schedule", "optimizer.decay"},
                   {.got = "wsd has no decay", .expected = "optimizer.decay, the steps of the fall at the end"});
  if (!wsd && optimizer.decay > 0)
    complaints.add(run, {"optimizer.decay", "optimizer.schedule"},
                   {.got = fmt::format("decay is given, but the schedule is {}", optimizer.schedule),
                    .expected = "optimizer.schedule = \"wsd\"",
                    .hint = "the other schedules end with the last step"});
  int64_t room = run.train.steps - optimizer.warmup;
  if (wsd && room >= 0 && optimizer.decay > room)
    complaints.add(run, {"optimizer.decay", "optimizer.warmup", "train.steps"},
                   {.got = fmt::format("warmup {} and decay {} are longer than the {} steps of the run",
                                       optimizer.warmup, optimizer.decay, run.train.steps),
                    .expected = fmt::format("at most {}", room)});
}

void check_spike(const RunConfig& run, Complaints& complaints) {
  const std::string& action = run.train.spike.action;
  struct KeyOfAction {
    std::string_view key, action;
  };
  constexpr KeyOfAction kKeysOfActions[] = {
      {"train.spike.most_skips", "skip"},        {"train.spike.rewind_steps", "rewind"},
      {"train.spike.skip_steps", "rewind"},      {"train.spike.most_rewinds", "rewind"},
      {"train.spike.rate_factor", "lower_rate"}, {"train.spike.rate_steps", "lower_rate"}};
  // A policy that is switched off may stay in the config.
  bool off = run.given("train.spike.action") && action == "none";
  for (const auto& [key, user] : kKeysOfActions)
    if (run.given(key) && action != user && !off)
      complaints.add(run, {std::string(key), "train.spike.action"},
                     {.got = fmt::format("{} is given, but the action is {}", key, action),
                      .expected = fmt::format("train.spike.action = \"{}\"", user)});
  if (action == "rewind" && run.checkpoint.every == 0)
    complaints.add(run, {"train.spike.action", "checkpoint.every"},
                   {.got = "rewind needs checkpoints, and none is written before the end",
                    .expected = "checkpoint.every above 0"});
}

void check_checkpoint(const RunConfig& run, Complaints& complaints) {
  for (const std::string& what : run.checkpoint.accept_changed)
    if (what != "tokenizer" && what != "data" && what != "model")
      complaints.add(run, {"checkpoint.accept_changed"},
                     {.got = "got " + toml_quoted(what), .expected = "tokenizer, data or model"});
  const CheckpointSection& checkpoint = run.checkpoint;
  if (checkpoint.keep == 0 && checkpoint.keep_every > 0)
    complaints.add(run, {"checkpoint.keep_every", "checkpoint.keep"},
                   {.got = "it has no effect where checkpoint.keep = 0 keeps all",
                    .expected = "checkpoint.keep of at least 1, or leave it out"});
  if (checkpoint.keep == 0 && checkpoint.keep_best > 0)
    complaints.add(run, {"checkpoint.keep_best", "checkpoint.keep"},
                   {.got = "it has no effect where checkpoint.keep = 0 keeps all",
                    .expected = "checkpoint.keep of at least 1, or leave it out"});
  int64_t measured = run.train.eval_every;
  if (checkpoint.keep_best > 0 && (measured == 0 || checkpoint.every % measured != 0))
    complaints.add(
        run, {"checkpoint.keep_best", "train.eval_every", "checkpoint.every"},
        {.got = fmt::format("checkpoints every {} steps, validation loss every {}", checkpoint.every, measured),
         .expected = "train.eval_every that divides checkpoint.every, so that every checkpoint has a loss"});
  for (const char* key : {"checkpoint.local_dir", "checkpoint.replication", "checkpoint.replication_jump"})
    if (checkpoint.local_every == 0 && run.given(key))
      complaints.add(run, {key, "checkpoint.local_every"},
                     {.got = "it has no effect without local checkpoints",
                      .expected = "checkpoint.local_every above 0, or leave it out"});
  if (checkpoint.local_every > 0 && !checkpoint.local_dir.starts_with('/'))
    complaints.add(
        run, {"checkpoint.local_dir"},
        {.got = "got " + toml_quoted(checkpoint.local_dir), .expected = "a path from / on, the same on every host"});
  int64_t jump = checkpoint.replication_jump, ranks = std::max<int64_t>(1, ranks_of(run.mesh));
  if (checkpoint.local_every > 0 && jump > 0 && (!checkpoint.replication || jump % ranks == 0))
    complaints.add(
        run, {"checkpoint.replication_jump", "checkpoint.replication"},
        {.got = checkpoint.replication ? fmt::format("{} of {} ranks leads back to the same rank", jump, ranks)
                                       : "it has no effect without checkpoint.replication",
         .expected = checkpoint.replication ? "a jump that leads to another rank"
                                            : "checkpoint.replication = true, or leave it out"});
}

void check_model_source(const RunConfig& run, Complaints& complaints) {
  if (run.model.other_tokenizer && !run.model.from)
    complaints.add(run, {"model.other_tokenizer", "model.from"},
                   {.got = "it has no effect without model.from", .expected = "model.from too, or leave it out"});
}

}  // namespace

int64_t most_microbatches(int64_t stages) {
  constexpr int64_t kMost = 1 << 16, kMostOfAllStages = 1 << 21;
  return std::clamp(kMostOfAllStages / std::max<int64_t>(stages, 1), int64_t{1}, kMost);
}

void check_together(const RunConfig& run, Complaints& complaints) {
  const ModelSpec spec = draft_model(run, complaints);
  check_name(run, complaints);
  check_mesh(run, spec, complaints);
  check_recompute(run, spec, complaints);
  check_pipeline(run, complaints);
  check_data(run, spec, complaints);
  check_documents(run, complaints);
  check_batch(run, spec, complaints);
  check_expert_gradients(run, spec, complaints);
  check_master_weights(run, complaints);
  check_offload(run, complaints);
  check_loss_scale(run, complaints);
  check_reproducible(run, spec, complaints);
  check_optimizer(run, complaints);
  check_spike(run, complaints);
  check_checkpoint(run, complaints);
  check_model_source(run, complaints);
}

std::vector<Complaint> check(const RunConfig& run) {
  Complaints complaints;
  check_together(run, complaints);
  return complaints.list();
}

}  // namespace sextant
