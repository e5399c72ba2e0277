#include "replay/replay.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "comm/tags.h"
#include "config/affects.h"
#include "config/load.h"
#include "config/schema.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "train/faults/op_fault.h"
#include "train/health/spike_watch.h"
#include "train/health/time_limits.h"
#include "train/save/run_checkpoint.h"
#include "train/save/run_directory.h"
#include "train/source_model.h"
#include "train/trainer.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// True for a key that changes how a step is computed, and not which step it is.
bool keeps_step(std::string_view key) {
  const Key* known = find_key(key);
  return !known || affects_of(*known) == Affects::execution || key == "train.precision" ||
         key == "batch.microbatch";  // an unknown one is refused where it is read
}

void refuse_other_steps(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    std::string key = text.substr(0, text.find('='));
    if (keeps_step(key)) continue;
    throw UserError({.place = fmt::format("command line: {}", text),
                     .got = fmt::format("{} would make another step of it", key),
                     .expected =
                         "a key that says how the step is computed: mesh.*, pipeline.*, device, train.precision, "
                         "train.threads, train.recompute, batch.microbatch"});
  }
}

double number_of(const nlohmann::json& line, const char* name) {
  if (line.contains(name) && line[name].is_number()) return line[name].get<double>();
  auto odd = line.find("non_finite");
  if (odd == line.end() || !odd->is_object() || !odd->contains(name)) return std::numeric_limits<double>::quiet_NaN();
  std::string what = (*odd)[name].is_string() ? (*odd)[name].get<std::string>() : "nan";
  double infinity = std::numeric_limits<double>::infinity();
  return what == "inf" ? infinity : what == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

// One rank's part of a replay.
class RankReplay {
 public:
  RankReplay(const ReplayPlan& plan, const ModelSpec& spec, const Trainer::Parts& parts,
             const std::vector<Fault>& faults)
      : plan_(plan), spec_(spec), trainer_(parts) {
    for (const Fault& fault : faults) {
      if (fault.rank != bound().rank()) continue;
      require_op_of(fault, bound());
      faults_.push_back(fault);
    }
  }

  void load() {
    Bound& bound = trainer_.bound();
    if (!plan_.checkpoint.empty()) {
      state_ = load_run_checkpoint(plan_.checkpoint, bound, spec_, optimizer_of(plan_.run));
      spikes_.restore(state_.spike);
    } else if (plan_.run.model.from) {
      load_source_model(bound, plan_.run, spec_);
    } else {
      initialize_weights(bound, static_cast<uint64_t>(plan_.run.train.seed));
    }
  }

  StepMetrics next_step(OpObserver* observer = nullptr) {
    int64_t step = ++state_.step;
    std::deque<OpFault> spoilers;
    for (const Fault& fault : faults_)
      if (fault.step == step) observer = &spoilers.emplace_back(fault, observer);
    bound().observe(observer);
    trainer_.begin_step(step, state_.samples, spikes_.policy_of(step));
    state_.samples += plan_.run.batch.sequences;
    StepMetrics metrics = trainer_.finish_step();
    bound().settle();
    bound().observe(nullptr);
    spikes_.note(metrics);
    return metrics;
  }

  // Everything that lasts from step to step, to run the next one more than once.
  void keep() {
    kept_state_ = state_;
    kept_spikes_ = spikes_.state();
    for_each_lasting([&](const Value& value) {
      std::vector<std::byte>& bytes = kept_.emplace_back(static_cast<size_t>(value.local_bytes().n));
      trainer_.bound().read(value, bytes);
    });
  }
  void go_back() {
    state_ = kept_state_;
    spikes_.restore(kept_spikes_);
    size_t i = 0;
    for_each_lasting([&](const Value& value) { trainer_.bound().write(value, kept_[i++]); });
  }

  std::optional<double> measure(const Feeder::Samples& samples) { return trainer_.measure(samples); }
  int64_t samples() const { return state_.samples; }
  Bound& bound() { return trainer_.bound(); }

 private:
  template <class Visit>
  void for_each_lasting(Visit visit) {
    for (const Value& value : trainer_.bound().program().values)
      if (is_persistent(value.kind) && value.buffer >= 0) visit(value);
  }

  const ReplayPlan& plan_;
  const ModelSpec& spec_;
  Trainer trainer_;
  RunState state_, kept_state_;
  SpikeWatch spikes_{plan_.run.train.spike};
  SpikeState kept_spikes_;
  std::vector<std::vector<std::byte>> kept_;
  std::vector<Fault> faults_;  // of this rank
};

// Outputs of all ranks, sorted by ObservedOutput::order.
class Gathered {
 public:
  void add(std::vector<ObservedOutput> more) {
    std::lock_guard lock(mutex_);
    all_.insert(all_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  std::vector<ObservedOutput> in_order() {
    std::ranges::stable_sort(all_, {}, &ObservedOutput::order);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<ObservedOutput> all_;
};

}  // namespace

std::optional<RecordedStep> recorded_step(const fs::path& run, int64_t step) {
  std::error_code ignored;
  if (!fs::exists(run / "metrics.jsonl", ignored)) return std::nullopt;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string text; std::getline(lines, text);) {
    auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("step") || line["step"] != step) continue;
    return RecordedStep{step, number_of(line, "loss"), number_of(line, "grad_norm")};
  }
  return std::nullopt;
}

ReplayPlan plan_replay(const fs::path& run, int64_t step, const std::vector<std::string>& overrides) {
  refuse_other_steps(overrides);
  StepOfRun found = find_step(run, step, overrides);
  ReplayPlan plan{.directory = run,
                  .step = step,
                  .run = std::move(found.run),
                  .first_sample = found.first_sample,
                  .microbatch_sequences = 0,
                  .checkpoint = {},
                  .checkpoint_step = 0};
  plan.microbatch_sequences =
      plan.run.batch.microbatch * run_shape(plan.run, resolve_spec(plan.run)).mesh.ranks(AxisRole::data);
  for (const Checkpoint& checkpoint : list_checkpoints(run, kRunStateFile))
    if (checkpoint.step < step) plan.checkpoint = checkpoint.path, plan.checkpoint_step = checkpoint.step;
  std::map<int64_t, fs::path> history = config_history(run);
  int64_t config_begin = std::prev(history.upper_bound(step))->first;
  if (config_begin > plan.checkpoint_step + 1 || history.begin()->first > plan.checkpoint_step + 1)
    throw UserError({.place = run.string(),
                     .got = fmt::format("between {} and step {} the run has had another config, from step {} on",
                                        plan.checkpoint.empty() ? "its beginning" : plan.checkpoint.filename().string(),
                                        step, config_begin),
                     .expected = fmt::format("a checkpoint of step {} to {}", config_begin - 1, step - 1),
                     .hint = "replay a step that is nearer to a checkpoint before it"});
  return plan;
}

Replayed replay(const ReplayPlan& plan, const Dataset& dataset, const MakeExecutor& make_executor,
                const ReplayOptions& options) {
  ModelSpec spec = resolve_spec(plan.run);
  RunShape shape = run_shape(plan.run, spec);
  int ranks = shape.mesh.world_size(), threads = threads_per_rank(plan.run, ranks);
  RankContext planner{.rank = 0};
  RunConfig lowered = plan.run;
  // The Program that measures losses is that of evaluations, which this run may have none of.
  if (options.documents && !has_validation(lowered))
    lowered.train.eval_every = 1, lowered.data.validation_fraction = 0.1;
  RunPrograms programs = build_programs(lowered, shape, make_executor(planner, threads)->target());
  Replayed replayed;
  replayed.executions.resize(static_cast<size_t>(options.times));
  std::atomic<int64_t> order{0};
  Gathered gathered;
  run_ranks({}, {ranks, TimeLimits::wait_of(TimeLimits(plan.run).in_other_work())}, [&](const RankContext& context) {
    HostGroup group = context.transport ? HostGroup(*context.transport, kHostTag) : HostGroup();
    std::unique_ptr<Executor> executor = make_executor(context, threads);
    RankReplay rank(plan, spec, {plan.run, programs, dataset, *executor, group}, options.faults);
    rank.load();
    for (int64_t step = plan.checkpoint_step + 1; step < plan.step; ++step) {
      StepMetrics metrics = rank.next_step();
      if (group.leads()) replayed.before.push_back(metrics);
    }
    BUG_IF(rank.samples() != plan.first_sample, "step {} begins with sample {}, not {}", plan.step, rank.samples(),
           plan.first_sample);
    if (options.documents) {
      LossesOfStep losses = document_losses(dataset, plan.first_sample, plan.run.batch.sequences,
                                            [&](const Feeder::Samples& samples) { return rank.measure(samples); });
      if (group.leads()) replayed.documents = std::move(losses);
    }
    if (options.times > 1) rank.keep();
    for (int i = 0; i < options.times; ++i) {
      if (i > 0) rank.go_back();
      StepObserver observer(rank.bound().program(), context.rank, order);
      StepMetrics metrics = rank.next_step(options.ops ? &observer : nullptr);
      gathered.add(observer.take());
      group.barrier();
      if (group.leads()) replayed.executions[static_cast<size_t>(i)] = {.metrics = metrics, .ops = gathered.in_order()};
      group.barrier();
    }
  });
  return replayed;
}

}  // namespace sextant
