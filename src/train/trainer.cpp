#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "config/microbatches.h"
#include "exec/op_place.h"
#include "ir/mtp_paths.h"
#include "ops/load_statistics.h"
#include "ops/lost_rows.h"
#include "optim/loss_scaling.h"
#include "train/counted_part.h"
#include "train/lr_schedule.h"

namespace sextant {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Losses of a step that may be under way at once.
constexpr size_t kOpenLosses = 256;

// The losses that models may have, in the order of Begun::losses; after them those of multi-token prediction.
// The rows dropped on the way to experts are added up over microbatches as losses are.
enum Loss : size_t { kModelLoss, kBalanceLoss, kRouterZLoss, kDroppedRows, kFirstMtpLoss };
constexpr std::array<std::string_view, kFirstMtpLoss> kLossPaths{"loss", "balance_loss", "router_z_loss",
                                                                 kDroppedRowsPath};

bool any_has(const std::vector<Program>& programs, std::string_view path) {
  return std::any_of(programs.begin(), programs.end(), [&](const Program& program) { return program.find(path); });
}

// Numbers of a rank's times that all ranks learn from each other: work, messages, input, crowding, and time
// without a core.
constexpr size_t kTimesOfRank = 5;

// A tenth of a microsecond is exact enough, and short as text.
double in_short(double seconds) {
  return std::round(seconds * 1e7) / 1e7;
}

// The gradient norm, lost rows and rounds, the loss scale, and the two squares of the noise scale.
constexpr size_t kOtherNumbers = 6;

// The value may be absent: a pipeline rank has only the feeds and fetches of its own stages.
template <class T>
void write_if_present(Bound& bound, std::string_view path, T x) {
  const Value* value = bound.program().find(path);
  if (value && value->buffer >= 0) write_value(bound, *value, x);
}

// Hashes of the values that a rank computes alone for a microbatch: losses, and gradients before sums over ranks.
class GradientHashes final : public OpObserver {
 public:
  explicit GradientHashes(const Program& program) : program_(program) {}

  void after(const OpRun& run) override {
    if (!run.op.attrs.names("axes").empty()) return;  // sums over ranks
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      const Value& value = program_[run.op.outputs[i]];
      if (value.kind != ValueKind::fetch && !is_to_be_summed(value)) continue;
      const Tensor& made = run.outputs[i];
      ContentHash hash;
      hash.add({made.as<const std::byte>(), static_cast<size_t>(made.count() * size_of(made.dtype))});
      values_.push_back(hash.value());
      paths_.push_back(value.path);
    }
  }

  // Over data-parallel ranks, each of which has a term of its own: gradients of weights, as ops make them.
  bool is_to_be_summed(const Value& value) const {
    for (int axis = 0; axis < program_.mesh.axis_count(); ++axis)
      if (program_.mesh.role(axis) == AxisRole::data && value.layout.at(axis) == kPartial) return true;
    return false;
  }

  std::vector<uint64_t> take_values() { return std::move(values_); }
  std::vector<std::string> take_paths() { return std::move(paths_); }

 private:
  const Program& program_;
  std::vector<uint64_t> values_;
  std::vector<std::string> paths_;
};

}  // namespace

Trainer::Trainer(const Parts& parts)
    : run_(parts.run),
      dataset_(parts.dataset),
      executor_(parts.executor),
      group_(parts.group),
      rank_status_(parts.rank_status),
      clock_(parts.rank_status) {
  size_t stage_rank = static_cast<size_t>(stage_rank_of(parts.programs.train[0].mesh, group_.rank()));
  auto bytes_in = [&](MemorySpace space) { return parts.programs.arena_bytes(static_cast<int>(stage_rank), space); };
  arena_ = parts.executor.allocate(bytes_in(MemorySpace::device), bytes_in(MemorySpace::host),
                                   {bytes_in(MemorySpace::nvme), run_.offload.path});
  count_layers_with_experts(parts.programs);
  find_losses(parts.programs);
  train_ = make_runner(parts, parts.programs.train[stage_rank]);
  for (const RunPrograms::Repeat& repeat : parts.programs.repeat)
    repeat_.push_back({repeat.rounds, make_runner(parts, repeat.programs[stage_rank])});
  if (!parts.programs.measure.empty()) {
    measure_ = make_runner(parts, parts.programs.measure[stage_rank]);
    measure_->tensors.emplace(parts.programs.measure, *measure_->bound);
  }
  noise_parts_ = parts.programs.noise_parts;
  // Nothing may build on a step before it is known that its update was made. A check that fails ends a rank within a
  // step, and the numbers of steps before it take all ranks to collect.
  bool alone = !repeat_.empty() || (run_.train.check_gemms > 0 && group_.size() > 1);
  steps_ahead_ = alone ? 0 : parts.executor.steps_ahead();
  begun_.resize(static_cast<size_t>(steps_ahead_) + 1);
  for (Begun& begun : begun_) {
    begun.open.reserve(kOpenLosses);
    begun.losses.resize(losses_.size() + 1 + kTimesOfRank * static_cast<size_t>(group_.size()));
    begun.mtp_targets.resize(mtp_scales_.size());
  }
  size_t numbers = kOpenLosses + kOtherNumbers + train_.loads.size();
  BUG_IF(begun_.size() * numbers > Bound::kFetchesUnderWay, "{} numbers of {} steps are more than an executor holds",
         numbers, begun_.size());
  if (parts.programs.evaluate.empty()) return;
  evaluate_ = parts.executor.bind(parts.programs.evaluate[stage_rank], *arena_);
  auto feeder = [&](const BatchSampler& sampler) {
    return std::make_unique<Feeder>(*evaluate_, sampler, dataset_.end_of_text, static_cast<uint64_t>(run_.train.seed));
  };
  if (dataset_.validation) evaluate_feeder_ = feeder(*dataset_.validation);
  measure_feeder_ = feeder(dataset_.train);
}

Trainer::Runner Trainer::make_runner(const Parts& parts, const Program& program) {
  Runner runner{.bound = parts.executor.bind(program, *arena_), .feeder = {}, .losses = {}, .loads = {}};
  runner.feeder = std::make_unique<Feeder>(*runner.bound, dataset_.train, dataset_.end_of_text,
                                           static_cast<uint64_t>(run_.train.seed));
  size_t place = 0;
  for (int layer : layers_with_experts_)
    for (std::string_view name : load_names_) {
      std::string path = fmt::format("load.{}.{}", layer, name);
      if (counts(*runner.bound, path)) runner.loads.emplace_back(place, &program.at(path));
      ++place;
    }
  for (const HostAccess& fetched : fetches(program))
    for (size_t i = 0; i < losses_.size(); ++i)
      if (program[fetched.value].path == losses_[i].path && counts(*runner.bound, losses_[i].path))
        runner.losses.push_back({i, fetched});
  return runner;
}

void Trainer::find_losses(const RunPrograms& programs) {
  for (std::string_view path : kLossPaths) losses_.push_back({std::string(path), any_has(programs.train, path)});
  for (MtpPaths paths = mtp_paths(1); any_has(programs.train, paths.loss); paths = mtp_paths(mtp_depths() + 1)) {
    losses_.push_back({paths.loss, true});
    mtp_scales_.push_back(paths.scale);
  }
}

void Trainer::count_layers_with_experts(const RunPrograms& programs) {
  int last = -1;
  for (const Program& program : programs.train)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops) last = std::max(last, op.block);
  load_names_.assign(kLoadStatistics.begin(), kLoadStatistics.end());
  for (int layer = 0; layer <= last; ++layer) {
    std::string first = fmt::format("load.{}.{}", layer, kLoadStatistics[0]);
    if (any_has(programs.train, first)) layers_with_experts_.push_back(layer);
  }
  // All layers with experts have a correction bias, or none has.
  if (!layers_with_experts_.empty() &&
      any_has(programs.train, fmt::format("load.{}.{}", layers_with_experts_[0], kBiasStatistics[0])))
    load_names_.insert(load_names_.end(), kBiasStatistics.begin(), kBiasStatistics.end());
}

bool Trainer::counts(const Bound& bound, std::string_view path) const {
  const Value* value = bound.program().find(path);
  return value && counts_part(bound.program(), bound.rank(), *value);
}

void Trainer::begin_step(int64_t step, int64_t first_sample, const StepPolicy& policy, Trace* trace) {
  BUG_IF(steps_under_way() > steps_ahead_, "{} steps under way", steps_under_way());
  if (steps_under_way() == 0) {
    last_finish_s_ = now_s();
    if (steps_ahead_ > 0) last_end_ = executor_.mark_time();
  }
  clock_.resume();
  Begun& begun = begun_[static_cast<size_t>(steps_begun_++) % begun_.size()];
  begun.step = step;
  begun.first_sample = first_sample;
  begun.lr = learning_rate(run_.optimizer, run_.train.steps, step) * policy.rate_factor;
  begun.norm_limit = policy.norm_limit;
  const StepDrill drill = std::exchange(drill_next_, {});
  begun.spoiled = drill.spoils_gradients;
  begun.measures = measures(step);
  count_mtp_targets(begun);
  checks_ = {.seed = static_cast<uint64_t>(run_.train.seed),
             .step = step,
             .gemms = run_.train.check_gemms,
             .collectives = run_.train.check_collectives,
             .flips_gemm = drill.flips_gemm,
             .flips_message = drill.flips_message};
  issue(runner_of(begun), begun, trace);
  if (steps_ahead_ > 0) begun.end = executor_.mark_time();
}

// A host that runs ahead may see the end of a step late, when it has issued most of the next: then the device's clock
// counts.
double Trainer::seconds_of(const Begun& begun) {
  const double now = now_s(), by_host = now - std::exchange(last_finish_s_, now);
  return steps_ahead_ == 0 ? by_host : executor_.seconds_between(std::exchange(last_end_, begun.end), begun.end);
}

void Trainer::write_feeds(Bound& bound, const Begun& begun) {
  // Every token of the global batch weighs the same, however it is cut into microbatches and ranks. Packed data has no
  // padding, so the count is known before the first microbatch.
  float loss_scale = 1.0f / static_cast<float>(run_.batch.sequences * run_.batch.seq);
  write_if_present(bound, "loss_scale", begun.spoiled ? std::numeric_limits<float>::quiet_NaN() : loss_scale);
  // The losses of routers are means over tokens in themselves: of every microbatch the same share.
  write_if_present(bound, "balance_scale", static_cast<float>(microbatch_share()));
  for (size_t i = 0; i < mtp_scales_.size(); ++i) {
    // A mean over the targets that count, and over depths.
    double scale = begun.mtp_targets[i] > 0 ? run_.model.mtp.loss_weight / (begun.mtp_targets[i] * mtp_depths()) : 0;
    write_if_present(bound, mtp_scales_[i], static_cast<float>(scale));
  }
  write_if_present(bound, "lr", static_cast<float>(begun.lr));
  write_if_present(bound, "norm_limit", begun.norm_limit);
  write_if_present(bound, "step", static_cast<int32_t>(begun.step));
}

std::vector<uint64_t> Trainer::hash_microbatch(int64_t step, int64_t first_sample, const StepDrill& drill) {
  Bound& bound = *train_.bound;
  Begun probe{};
  probe.step = step;
  probe.norm_limit = std::numeric_limits<float>::infinity();
  probe.mtp_targets.assign(mtp_scales_.size(), 1.0);
  bound.set_checks({.seed = static_cast<uint64_t>(run_.train.seed), .step = step, .flips_gemm = drill.flips_gemm});
  write_feeds(bound, probe);
  GradientHashes hashes(bound.program());
  bound.observe(&hashes);
  for (const Action& action : bound.program().schedule) {
    if (action.microbatch != 0 || action.region == RegionKind::update) continue;
    if (rank_status_) rank_status_->move_on();
    train_.feeder->before(action, {first_sample});
    bound.run(action);
  }
  bound.settle();
  bound.observe(nullptr);
  hashed_paths_ = hashes.take_paths();
  return hashes.take_values();
}

void Trainer::issue(Runner& runner, Begun& begun, Trace* trace) {
  Bound& bound = *runner.bound;
  const Program& program = bound.program();
  bound.set_checks(checks_);
  std::fill(begun.losses.begin(), begun.losses.end(), 0.0);
  write_feeds(bound, begun);
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    for (const Action& action : unit) {
      // Where ranks talk to each other, the executor writes it, op by op.
      if (rank_status_ && group_.size() == 1)
        rank_status_->begin_action(letter_of(action.region), action.chunk, action.microbatch);
      feed(runner, action, begun);
    }
    bound.run(unit, trace);
    for (const Action& action : unit) fetch_losses(runner, action, begun);
  });
  begun.grad_norm = bound.fetch(program.at("grad_norm"));
  if (!repeat_.empty()) {
    begun.lost_rows = bound.fetch(program.at(kLostRowsPath));
    bound.fetch(program.at(kRoundsNeededPath));
  }
  begun.first_load = begun.grad_norm + (repeat_.empty() ? 1 : 3);
  if (program.find(kUsedLossScalePath)) {
    begun.loss_scale = bound.fetch(program.at(kUsedLossScalePath));
    ++begun.first_load;
  }
  begun.noise.reset();
  if (const Value* small = program.find(kSmallSquaresPath); small && small->buffer >= 0) {
    begun.noise = bound.fetch(*small);
    bound.fetch(program.at(kFullSquaresPath));
    begun.first_load += 2;
  }
  for (const auto& [place, number] : runner.loads) bound.fetch(*number);
  // The next step may begin before this one's numbers are collected: it overwrites them.
  if (runner.tensors) {
    bound.settle();
    runner.tensors->read(bound, begun.tensors);
  }
}

// Some are made forward and some backward, and other microbatches may run in between: each is read when the unit that
// makes it has run, and the next one may overwrite it.
void Trainer::fetch_losses(Runner& runner, const Action& action, Begun& begun) {
  const Program& program = runner.bound->program();
  for (const LossFetch& loss : runner.losses) {
    if (!loss.access.is_at(action)) continue;
    if (begun.open.size() == kOpenLosses) collect_losses(*runner.bound, begun);
    begun.open.push_back({loss.loss, runner.bound->fetch(program[loss.access.value])});
  }
}

void Trainer::feed(Runner& runner, const Action& action, const Begun& begun) {
  double start = now_s();
  if (slow_input_ms_ > 0 && &action == &runner.bound->program().schedule.front())
    std::this_thread::sleep_for(std::chrono::milliseconds(slow_input_ms_));
  runner.feeder->before(action, {begun.first_sample + action.microbatch * microbatch_sequences(),
                                 begun.first_sample + run_.batch.sequences});
  clock_.add_input(now_s() - start);
}

void Trainer::count_mtp_targets(Begun& begun) {
  if (mtp_scales_.empty()) return;
  if (!run_.data.mask_documents) {  // all but the last of each sequence
    for (size_t i = 0; i < mtp_scales_.size(); ++i)
      begun.mtp_targets[i] = static_cast<double>(run_.batch.sequences *
                                                 std::max<int64_t>(0, run_.batch.seq - static_cast<int64_t>(i) - 1));
    return;
  }
  std::fill(begun.mtp_targets.begin(), begun.mtp_targets.end(), 0.0);
  for (int64_t first = 0; first < run_.batch.sequences; first += microbatch_sequences())
    for (size_t i = 0; i < mtp_scales_.size(); ++i)
      begun.mtp_targets[i] += static_cast<double>(train_.feeder->counted_targets(
          {begun.first_sample + first, begun.first_sample + run_.batch.sequences}, static_cast<int64_t>(i) + 1));
  group_.sum(begun.mtp_targets);
}

double Trainer::loss_term(double loss) const {
  constexpr double kQuantum = 0x1p-20;
  return is_reproducible_on_meshes(run_) ? std::rint(loss / kQuantum) * kQuantum : loss;
}

void Trainer::collect_losses(Bound& bound, Begun& begun) {
  for (const Begun::Ticket& open : begun.open)
    begun.losses[open.loss] += loss_term(static_cast<double>(bound.collect(open.ticket)));
  begun.open.clear();
}

Trainer::Collected Trainer::collect(Runner& runner, Begun& begun) {
  collect_losses(*runner.bound, begun);
  Collected numbers{.grad_norm = static_cast<double>(runner.bound->collect(begun.grad_norm)), .loads = {}};
  if (!repeat_.empty()) {
    numbers.lost_rows = std::llround(runner.bound->collect(begun.lost_rows));
    numbers.rounds_needed = std::llround(runner.bound->collect(begun.lost_rows + 1));
  }
  if (begun.loss_scale) numbers.loss_scale = static_cast<double>(runner.bound->collect(*begun.loss_scale));
  if (begun.noise) {
    auto part = [&](int64_t ticket, std::string_view path) {
      double squares = static_cast<double>(runner.bound->collect(ticket));
      return counts(*runner.bound, path) ? squares : 0;
    };
    numbers.small_squares = part(*begun.noise, kSmallSquaresPath);
    numbers.full_squares = part(*begun.noise + 1, kFullSquaresPath);
  }
  if (!layers_with_experts_.empty()) numbers.loads = collect_loads(runner, begun);
  return numbers;
}

// Gradients of a microbatch's parts add up to that of the batch: each is the mean over its own tokens, times their
// share.
std::optional<double> Trainer::note_noise(const Collected& numbers) {
  if (noise_parts_ == 0) return std::nullopt;
  std::array<double, 2> squares{numbers.small_squares, numbers.full_squares};
  group_.sum(squares);
  double scale = numbers.loss_scale.value_or(1), tokens = static_cast<double>(run_.batch.sequences * run_.batch.seq);
  auto parts = static_cast<double>(noise_parts_), of_batch = parts / microbatch_share();
  noise_scale_.note(squares[0] * of_batch * of_batch / parts / (scale * scale), tokens / of_batch,
                    squares[1] / (scale * scale), tokens);
  return noise_scale_.tokens();
}

StepMetrics::ExpertLoads Trainer::collect_loads(Runner& runner, const Begun& begun) {
  std::vector<double> numbers(layers_with_experts_.size() * load_names_.size());
  int64_t ticket = begun.first_load;
  for (const auto& [place, number] : runner.loads)
    numbers[place] = static_cast<double>(runner.bound->collect(ticket++));
  group_.sum(numbers);
  StepMetrics::ExpertLoads loads;
  for (size_t i = 0; i < numbers.size(); i += load_names_.size()) {
    loads.peak.push_back(numbers[i]);
    loads.entropy.push_back(numbers[i + 1]);
    loads.unused.push_back(static_cast<int64_t>(numbers[i + 2]));
    if (load_names_.size() == kLoadStatistics.size()) continue;
    loads.bias_least.push_back(numbers[i + 3]);
    loads.bias_most.push_back(numbers[i + 4]);
  }
  return loads;
}

StepMetrics::ExpertRows Trainer::repeat_step(Begun& begun, Collected& numbers) {
  StepMetrics::ExpertRows rows{.lost = numbers.lost_rows, .repeated_steps = ++repeated_steps_};
  // The rounds that later layers need are known only when the first layer that lost rows has lost none.
  for (Repeat& repeat : repeat_) {
    if (repeat.rounds < numbers.rounds_needed) continue;
    issue(repeat.runner, begun, nullptr);
    numbers = collect(repeat.runner, begun);
    rows.rounds = repeat.rounds;
    if (numbers.rounds_needed <= repeat.rounds) break;
  }
  BUG_IF(numbers.rounds_needed > rows.rounds, "rows were lost in {} rounds, which serve any routing", rows.rounds);
  rows.needed = numbers.rounds_needed;
  return rows;
}

StepMetrics Trainer::finish_step() {
  Begun& begun = begun_[static_cast<size_t>(steps_finished_++) % begun_.size()];
  Collected numbers = collect(runner_of(begun), begun);
  std::optional<StepMetrics::ExpertRows> rows;
  if (!repeat_.empty())
    rows = numbers.lost_rows > 0 ? repeat_step(begun, numbers)
                                 : StepMetrics::ExpertRows{.repeated_steps = repeated_steps_};
  // The statistics of a repeated step are left out: they are of an attempt that changed nothing.
  std::optional<TensorStatistics> tensors;
  if (begun.measures && !(rows && rows->lost > 0))
    tensors = measure_->tensors->joined(begun.tensors, group_, numbers.loss_scale.value_or(1));
  std::optional<double> noise_scale = note_noise(numbers);
  // All ranks decide by one norm, whatever its last bits are on their own.
  std::vector<double>& losses = begun.losses;
  double& grad_norm = losses[losses_.size()];
  grad_norm = group_.leads() ? numbers.grad_norm : 0;
  RankTimes times = clock_.take();
  std::span<double> of_ranks = std::span(losses).subspan(losses_.size() + 1);
  std::ranges::copy(std::array{times.work(), times.waited, times.input, times.crowding, times.crowded_out()},
                    of_ranks.subspan(kTimesOfRank * static_cast<size_t>(group_.rank())).begin());
  group_.sum(losses);
  auto of_routers = [&](size_t i) {
    return losses_[i].in_model ? std::optional(losses[i] * microbatch_share()) : std::nullopt;
  };
  std::optional<double> mtp_loss;
  for (size_t i = 0; i < mtp_scales_.size(); ++i)
    mtp_loss = mtp_loss.value_or(0) + losses[kFirstMtpLoss + i] / (std::max(begun.mtp_targets[i], 1.0) * mtp_depths());
  int64_t batch_tokens = run_.batch.sequences * run_.batch.seq;
  const double seconds = seconds_of(begun);
  if (steps_under_way() == 0) clock_.pause();
  auto times_of_ranks = [&](size_t which) {
    std::vector<double> list;
    for (size_t i = which; i < of_ranks.size(); i += kTimesOfRank) list.push_back(in_short(of_ranks[i]));
    return list;
  };
  return {
      .step = begun.step,
      .loss = losses[kModelLoss] / static_cast<double>(batch_tokens),
      .balance_loss = of_routers(kBalanceLoss),
      .router_z_loss = of_routers(kRouterZLoss),
      .mtp_loss = mtp_loss,
      .grad_norm = grad_norm,
      .loss_scale = numbers.loss_scale,
      .norm_limit = std::isfinite(begun.norm_limit) ? std::optional<double>(begun.norm_limit) : std::nullopt,
      .lr = begun.lr,
      .tokens_per_s = static_cast<double>(batch_tokens) / seconds,
      .step_s = seconds,
      .own_s_by_rank = times_of_ranks(0),
      .message_s_by_rank = times_of_ranks(1),
      .input_s_by_rank = times_of_ranks(2),
      .processor_s = in_short(times.processor),
      .crowding = std::ranges::max(times_of_ranks(3)),
      .crowded_out_s = std::ranges::max(times_of_ranks(4)),
      .occupied = times.occupied,
      .arena_bytes = arena_->bytes(),
      .host_arena_bytes = arena_->host_bytes(),
      .nvme_arena_bytes = arena_->nvme_bytes(),
      .expert_loads = std::move(numbers.loads),
      .expert_rows = rows,
      .dropped_rows = losses_[kDroppedRows].in_model ? std::optional(std::llround(losses[kDroppedRows])) : std::nullopt,
      .grad_noise_scale = noise_scale,
      .tensors = std::move(tensors)};
}

void Trainer::evaluate_part(Feeder& feeder, const Feeder::Samples& part, std::span<double, 2> sums) {
  for (const Action& action : evaluate_->program().schedule) {
    if (rank_status_) rank_status_->move_on();
    feeder.before(action, part);
    evaluate_->run(action);
  }
  evaluate_->settle();
  if (counts(*evaluate_, "loss"))
    sums[0] += loss_term(static_cast<double>(read_value<float>(*evaluate_, evaluate_->program().at("loss"))));
  sums[1] += static_cast<double>(feeder.counted_targets(part));
}

std::optional<double> Trainer::evaluate() {
  if (!evaluate_feeder_) return std::nullopt;
  // The samples are the same for every microbatch and mesh: what the last microbatch has beyond them does not count.
  int64_t samples = measured_samples(run_, *dataset_.validation);
  std::array<double, 2> sums{};
  for (int64_t first = 0; first < samples; first += microbatch_sequences())
    evaluate_part(*evaluate_feeder_, {first, samples}, sums);
  group_.sum(sums);
  return sums[0] / sums[1];
}

std::optional<double> Trainer::measure(const Feeder::Samples& samples) {
  if (!measure_feeder_) return std::nullopt;
  std::array<double, 2> sums{};
  evaluate_part(*measure_feeder_, samples, sums);
  group_.sum(sums);
  return sums[1] > 0 ? std::optional(sums[0] / sums[1]) : std::nullopt;
}

}  // namespace sextant
