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
#include "config/microbatches.h"
#include "exec/op_place.h"
#include "ir/mtp_paths.h"
#include "train/gradient_hashes.h"

namespace sextant {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

// The value may be absent: a pipeline rank has only the feeds and fetches of its own stages.
template <class T>
void write_if_present(Bound& bound, std::string_view path, T x) {
  const Value* value = bound.program().find(path);
  if (value && value->buffer >= 0) write_value(bound, *value, x);
}

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
  places_ = StepPlaces(parts.programs.train);
  for (MtpPaths paths = mtp_paths(1); any_has(parts.programs.train, paths.loss); paths = mtp_paths(mtp_depths() + 1))
    mtp_scales_.push_back(paths.scale);
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
  const size_t most_open = StepTotals::kMostOpen + train_.reader->fetches_at_end();
  for (Begun& begun : begun_) {
    begun.totals.open.reserve(most_open);
    begun.mtp_targets.resize(mtp_scales_.size());
  }
  BUG_IF(begun_.size() * most_open > Bound::kFetchesUnderWay, "{} numbers of {} steps are more than an executor holds",
         most_open, begun_.size());
  if (!parts.programs.evaluate.empty())
    evaluator_ = std::make_unique<Evaluator>(Evaluator::Parts{.run = run_,
                                                              .program = parts.programs.evaluate[stage_rank],
                                                              .dataset = dataset_,
                                                              .executor = executor_,
                                                              .arena = *arena_,
                                                              .group = group_,
                                                              .rank_status = rank_status_});
}

Trainer::Runner Trainer::make_runner(const Parts& parts, const Program& program) {
  Runner runner{.bound = parts.executor.bind(program, *arena_), .feeder = {}, .reader = {}};
  runner.feeder = std::make_unique<Feeder>(*runner.bound, dataset_.train, dataset_.end_of_text,
                                           static_cast<uint64_t>(run_.train.seed));
  runner.reader = std::make_unique<StepReader>(
      places_, *runner.bound,
      is_reproducible_on_meshes(run_) ? StepReader::Terms::exact : StepReader::Terms::as_they_are);
  return runner;
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
  begun.lr = run_.optimizer.rate(run_.train.steps, step) * policy.rate_factor;
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
  runner.reader->begin(begun.totals);
  write_feeds(bound, begun);
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    for (const Action& action : unit) {
      // Where ranks talk to each other, the executor writes it, op by op.
      if (rank_status_ && group_.size() == 1)
        rank_status_->begin_action(letter_of(action.region), action.chunk, action.microbatch);
      feed(runner, action, begun);
    }
    bound.run(unit, trace);
    for (const Action& action : unit) runner.reader->after(action, begun.totals);
  });
  runner.reader->after_schedule(begun.totals);
  // The next step may begin before this one's numbers are collected: it overwrites them.
  if (runner.tensors) {
    bound.settle();
    runner.tensors->read(bound, begun.tensors);
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

// Gradients of a microbatch's parts add up to that of the batch: each is the mean over its own tokens, times their
// share.
void Trainer::note_noise(StepValues& values) {
  if (noise_parts_ == 0) return;
  double scale = values.find(number::loss_scale).value_or(1), tokens = batch_tokens();
  auto parts = static_cast<double>(noise_parts_), of_batch = parts / microbatch_share();
  noise_scale_.note(values[number::small_squares] * of_batch * of_batch / parts / (scale * scale), tokens / of_batch,
                    values[number::full_squares] / (scale * scale), tokens);
  values.set_if(number::grad_noise_scale, noise_scale_.tokens());
}

// In the fewest rounds that lose no rows. The rounds that later layers need are known only when the first layer that
// lost rows has lost none.
void Trainer::repeat_step(Begun& begun, StepValues& values) {
  auto needed = [&] { return std::llround(own_value(places_, begun.totals, number::rounds_needed).value_or(1)); };
  int64_t rounds = 1;
  for (Repeat& repeat : repeat_) {
    if (repeat.rounds < needed()) continue;
    issue(repeat.runner, begun, nullptr);
    repeat.runner.reader->collect(begun.totals);
    rounds = repeat.rounds;
    if (needed() <= repeat.rounds) break;
  }
  BUG_IF(needed() > rounds, "rows were lost in {} rounds, which serve any routing", rounds);
  values.set(number::expert_rounds, rounds);
  ++repeated_steps_;
}

// Joins the times of all ranks with the totals: one message for both.
void Trainer::join(Begun& begun, StepValues& values) {
  RankTimes times = clock_.take();
  std::vector<double> of_ranks(kTimesOfRank * static_cast<size_t>(group_.size()));
  std::ranges::copy(std::array{times.work(), times.waited, times.input, times.crowding, times.crowded_out()},
                    std::span(of_ranks).subspan(kTimesOfRank * static_cast<size_t>(group_.rank())).begin());
  join_over_ranks(places_, begun.totals, of_ranks, group_);
  auto times_of_ranks = [&](size_t which) {
    std::vector<double> list;
    for (size_t i = which; i < of_ranks.size(); i += kTimesOfRank) list.push_back(in_short(of_ranks[i]));
    return list;
  };
  values.set(number::own_s_by_rank, times_of_ranks(0));
  values.set(number::message_s_by_rank, times_of_ranks(1));
  values.set(number::input_s_by_rank, times_of_ranks(2));
  values.set(number::input_s, std::ranges::max(times_of_ranks(2)));
  values.set(number::processor_s, in_short(times.processor));
  values.set(number::crowding, std::ranges::max(times_of_ranks(3)));
  values.set(number::crowded_out_s, std::ranges::max(times_of_ranks(4)));
  values.set(number::occupied, times.occupied);
}

StepMetrics Trainer::finish_step() {
  Begun& begun = begun_[static_cast<size_t>(steps_finished_++) % begun_.size()];
  StepMetrics m{.step = begun.step};
  runner_of(begun).reader->collect(begun.totals);
  int64_t lost = 0;
  if (!repeat_.empty()) {
    lost = std::llround(own_value(places_, begun.totals, number::rows_lost_in_attempt).value_or(0));
    if (lost > 0) {
      repeat_step(begun, m.values);
      m.values.set(number::lost_rows, lost);
    }
    m.values.set(number::repeated_steps, repeated_steps_);
  }
  // The statistics of a repeated step are left out: they are of an attempt that changed nothing.
  if (begun.measures && lost == 0)
    m.tensors = measure_->tensors->joined(begun.tensors, group_,
                                          own_value(places_, begun.totals, number::loss_scale).value_or(1));
  join(begun, m.values);
  report(places_, begun.totals,
         {.batch_tokens = batch_tokens(), .microbatch_share = microbatch_share(), .mtp_targets = begun.mtp_targets},
         m.values);
  note_noise(m.values);
  const double seconds = seconds_of(begun);
  if (steps_under_way() == 0) clock_.pause();
  m.values.set(number::lr, begun.lr);
  if (std::isfinite(begun.norm_limit)) m.values.set(number::norm_limit, static_cast<double>(begun.norm_limit));
  m.values.set(number::step_s, seconds);
  m.values.set(number::tokens_per_s, batch_tokens() / seconds);
  m.values.set(number::arena_bytes, arena_->bytes());
  if (arena_->host_bytes() > 0) m.values.set(number::host_arena_bytes, arena_->host_bytes());
  if (arena_->nvme_bytes() > 0) m.values.set(number::nvme_arena_bytes, arena_->nvme_bytes());
  return m;
}

}  // namespace sextant
