#include "config/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/hub_hint.h"
#include "base/toml_document.h"
#include "config/check_reproducible.h"
#include "config/complaints.h"
#include "config/layout_rules.h"
#include "config/mesh_axes.h"
#include "config/resolve.h"
#include "models/spec.h"
#include "optim/optimizer.h"

namespace sextant {

namespace {

const OptimizerDef& optimizer_def(const RunConfig& run) {
  const OptimizerDef* def = find_optimizer(run.optimizer.name);
  return def ? *def : optimizers::adamw;  // another name is complained about where it is read
}

void check_name(const RunConfig& run, Complaints& complaints) {
  bool one_part = run.name.find('/') == std::string::npos && run.name != "." && run.name != "..";
  if (!one_part)
    complaints.add(run, {"name"},
                   {.got = "got " + toml_quoted(run.name), .expected = "a name for a directory, without '/'"});
}

// Of data.tokenizer, where data.tokenizer_vocab is given, too.
std::string hint_for_tokenizer(const std::string& tokenizer) {
  std::error_code ignored;
  std::string hint = std::filesystem::exists(tokenizer, ignored) ? "" : tokenizer_download_hint(tokenizer);
  return hint.empty() ? "data.tokenizer_vocab is the size of a tokenizer that is trained here: leave it out" : hint;
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
                    .expected = "one of the two",
                    .hint = hint_for_tokenizer(data.tokenizer)});
  bool tokens = choice_of(data.format).holds_tokens;
  if (tokens && spec.vocab == 0 && data.tokenizer.empty())
    complaints.add(run, {"data.format", "data.tokenizer", "model.vocab", "model.preset", "model.from"},
                   {.got = fmt::format("{} files do not contain the size of the vocabulary", word_of(data.format)),
                    .expected = "model.vocab or data.tokenizer"});
}

void check_documents(const RunConfig& run, Complaints& complaints) {
  // Text needs it anyway, but a tokenizer that is trained brings its own. Documents of token files are told apart by
  // it.
  bool tokens = choice_of(run.data.format).holds_tokens;
  bool trained = run.data.tokenizer.empty() && !run.model.from;
  if (run.data.end_of_text && !run.data.mask_documents && (tokens ? !run.data.holds_out_documents() : trained))
    complaints.add(run, {"data.end_of_text", "data.mask_documents"},
                   {.got = "end_of_text is given, but nothing asks for it", .expected = "data.mask_documents = true"});
}

// Rounded to bf16 and then added up, gradients would lose what small ones say.
void check_expert_gradients(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  if (run.train.expert_gradients == DType::f32) return;
  if (!spec.experts)
    complaints.add(run, {"train.expert_gradients"},
                   {.got = fmt::format("{} has no experts", spec.architecture), .expected = "\"f32\""});
  if (run.train.precision == Precision::fp16)
    complaints.add(run, {"train.expert_gradients", "train.precision"},
                   {.got = "gradients in bf16 of a run in fp16", .expected = "\"f32\", or train.precision = \"bf16\""});
  const MeshSection& mesh = run.mesh;
  int64_t summands = run.batch.sequences / run.batch.microbatch * mesh.cp;
  if (summands > 1 || mesh.ep > 1)
    complaints.add(run, {"train.expert_gradients", "batch.microbatch"},
                   {.got = fmt::format("gradients in {} would be added up over microbatches or ranks",
                                       name_of(run.train.expert_gradients)),
                    .expected = "one microbatch in a step, and no data, context or expert parallelism; or \"f32\""});
  if (!optimizer_def(run).reads_narrow_gradients)
    complaints.add(run, {"train.expert_gradients", "optimizer.name"},
                   {.got = fmt::format("{} reads gradients in f32", run.optimizer.name),
                    .expected = optimizers_with(&OptimizerDef::reads_narrow_gradients) + ", or \"f32\""});
}

void check_master_weights(const RunConfig& run, Complaints& complaints) {
  if (run.train.master_weights == DType::bf16 && run.train.precision == Precision::fp16)
    complaints.add(run, {"train.master_weights", "train.precision"},
                   {.got = "bf16 weights may overflow in fp16", .expected = "\"f32\", or bf16"});
  if (run.train.master_weights == DType::bf16 && !optimizer_def(run).rounds_weights)
    complaints.add(run, {"train.master_weights", "optimizer.name"},
                   {.got = fmt::format("{} does not round weights at random", run.optimizer.name),
                    .expected = optimizers_with(&OptimizerDef::rounds_weights) + ", or \"f32\""});
}

void check_offload(const RunConfig& run, Complaints& complaints) {
  const OffloadSection& offload = run.offload;
  if (offload.to == OffloadTarget::nvme && !offload.optimizer)
    complaints.add(run, {"offload.to", "offload.optimizer"},
                   {.got = "NVMe keeps optimizer state, which stays on the device",
                    .expected = "offload.optimizer = true too, or offload.to = \"host\""});
  if (offload.to == OffloadTarget::nvme && offload.path.empty())
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
  if (run.train.precision == Precision::fp16)
    complaints.add(run, {"offload.optimizer", "train.precision"},
                   {.got = "master weights of fp16 are not updated on the host yet",
                    .expected = "train.precision = \"bf16\", or offload.optimizer = false"});
  if (!optimizer_def(run).runs_on_host)
    complaints.add(run, {"offload.optimizer", "optimizer.name"},
                   {.got = fmt::format("the step of {} does not run on the host", run.optimizer.name),
                    .expected = optimizers_with(&OptimizerDef::runs_on_host) + ", or offload.optimizer = false"});
  if (run.optimizer.state.value_or(StateType::f32) != StateType::f32)
    complaints.add(run, {"offload.optimizer", "optimizer.state"},
                   {.got = fmt::format("states in {} are not updated on the host", word_of(*run.optimizer.state)),
                    .expected = "optimizer.state = \"f32\", or offload.optimizer = false"});
  if (run.train.master_weights != DType::f32)
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
  const bool wsd = choice_of(optimizer.schedule).reads_decay;
  if (wsd && optimizer.decay == 0)
    complaints.add(run, {"optimizer.schedule", "optimizer.decay"},
                   {.got = "wsd has no decay", .expected = "optimizer.decay, the steps of the fall at the end"});
  if (!wsd && optimizer.decay > 0)
    complaints.add(run, {"optimizer.decay", "optimizer.schedule"},
                   {.got = fmt::format("decay is given, but the schedule is {}", word_of(optimizer.schedule)),
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
  const SpikeAction action = run.train.spike.action;
  struct KeyOfAction {
    std::string_view key;
    SpikeAction action;
  };
  constexpr KeyOfAction kKeysOfActions[] = {
      {"train.spike.most_skips", SpikeAction::skip},        {"train.spike.rewind_steps", SpikeAction::rewind},
      {"train.spike.skip_steps", SpikeAction::rewind},      {"train.spike.most_rewinds", SpikeAction::rewind},
      {"train.spike.rate_factor", SpikeAction::lower_rate}, {"train.spike.rate_steps", SpikeAction::lower_rate}};
  // A policy that is switched off may stay in the config.
  bool off = run.given("train.spike.action") && action == SpikeAction::none;
  for (const auto& [key, user] : kKeysOfActions)
    if (run.given(key) && action != user && !off)
      complaints.add(run, {std::string(key), "train.spike.action"},
                     {.got = fmt::format("{} is given, but the action is {}", key, word_of(action)),
                      .expected = fmt::format("train.spike.action = \"{}\"", word_of(user))});
  if (action == SpikeAction::rewind && run.checkpoint.every == 0)
    complaints.add(run, {"train.spike.action", "checkpoint.every"},
                   {.got = "rewind needs checkpoints, and none is written before the end",
                    .expected = "checkpoint.every above 0"});
}

void check_checkpoint(const RunConfig& run, Complaints& complaints) {
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
