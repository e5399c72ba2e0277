#include "train/health/drift_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "train/health/crowding.h"

namespace sextant {

namespace {

constexpr int64_t kFirstSteps = 10;       // memory is touched for the first time, caches fill
constexpr double kSmallestSpread = 0.02;  // of a logarithm: machines are no steadier than that for long
constexpr double kFarthest = 8;           // spreads that one block counts for at most
constexpr double kCertain = 12;           // the sum at which it is a drift
constexpr double kLargerPart = 0.5;       // of what a step takes longer
// A block that takes 1.5 times as long as the slowest block of the baseline needs no estimate of the noise, which is
// poor for few blocks. This number of such blocks in a row is a drift.
constexpr double kApart = 1.5, kApartBlocks = 4;
// More threads than before want a core: so many for each core, where there are more than half as many as cores (two
// share one).
constexpr double kHalfFull = 0.5, kMoreCrowded = 0.2;
// Who shares its cores gets less than its part of them: ranks and threads wait for each other. By so much, where the
// crowd is the same as before and one rank, collective or input is slow, which crowds seldom choose.
constexpr double kSharedLoss = 2, kChosenLoss = 1.5;

// Threads of other programs for each core that share caches and memory with the run, or the units of a core: it uses
// more processor time for the same work while they last.
constexpr double kOthersAtWork = 0.25;

struct CauseWords {
  std::string_view name, text;
};
constexpr std::array kCauses{
#define DRIFT_CAUSE(name, text) CauseWords{#name, text},
#include "train/health/drift_causes.def"
#undef DRIFT_CAUSE
};

double drift_median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The median over some of a number that `get` finds in each.
template <class List, class Get>
double median_over(const List& list, const Get& get) {
  std::vector<double> values;
  for (const auto& each : list) values.push_back(get(each));
  return drift_median(std::move(values));
}

// The same for every rank.
template <class List, class Numbers>
std::vector<double> medians_by_rank(const List& list, Numbers numbers) {
  std::vector<double> medians;
  for (size_t rank = 0; !list.empty() && rank < (list.front().*numbers).size(); ++rank)
    medians.push_back(median_over(list, [&](const auto& each) { return (each.*numbers)[rank]; }));
  return medians;
}

// Whether this rank's is far above those of the others.
bool is_alone(const std::vector<double>& ranks, std::vector<double>::const_iterator most) {
  std::vector<double> others = ranks;
  others.erase(others.begin() + (most - ranks.begin()));
  return !others.empty() && drift_median(others) < kLargerPart * *most;
}

}  // namespace

std::string_view name_of(DriftCause cause) {
  return kCauses[static_cast<size_t>(cause)].name;
}
std::string_view text_of(DriftCause cause) {
  return kCauses[static_cast<size_t>(cause)].text;
}

std::string Drift::text() const {
  return fmt::format("steps take {:.3g} ms since step {}, {:.0f} % longer than before ({:.3g} ms): {}{}", 1e3 * now_s,
                     since_step, 100 * (now_s / before_s - 1), 1e3 * before_s, text_of(cause),
                     rank ? fmt::format(" (rank {})", *rank) : "");
}

TimedStep timed_step(const StepMetrics& m, int processes) {
  return {.step = m.step,
          .step_s = m[number::step_s],
          .processor_s = m[number::processor_s],
          .crowding = m[number::crowding],
          .others = std::max(0.0, m[number::crowding] - processes * m[number::occupied]),
          .crowded_out_s = m[number::crowded_out_s],
          .own_s = m[number::own_s_by_rank],
          .message_s = m[number::message_s_by_rank],
          .input_s = m[number::input_s_by_rank]};
}

std::optional<Drift> DriftWatch::note(const TimedStep& step) {
  if (++seen_ <= kFirstSteps || !(step.step_s > 0)) return std::nullopt;
  open_.push_back(step);
  if (open_.size() < kBlock) return std::nullopt;
  Block block = block_of(open_);
  open_.clear();
  return add(std::move(block));
}

DriftWatch::Block DriftWatch::block_of(const std::vector<TimedStep>& steps) {
  Block block{.first_step = steps.front().step,
              .log_s = median_over(steps, [](const TimedStep& step) { return std::log(step.step_s); }),
              .processor_s = median_over(steps, [](const TimedStep& step) { return step.processor_s; }),
              .own_s = medians_by_rank(steps, &TimedStep::own_s),
              .message_s = medians_by_rank(steps, &TimedStep::message_s),
              .input_s = medians_by_rank(steps, &TimedStep::input_s)};
  for (const TimedStep& step : steps) {
    block.seconds += step.step_s;
    block.crowding += step.crowding / static_cast<double>(steps.size());
    block.others += step.others / static_cast<double>(steps.size());
    block.crowded_out_s += step.crowded_out_s / static_cast<double>(steps.size());
  }
  return block;
}

DriftWatch::Level DriftWatch::level() const {
  Level level{.centre = median_over(baseline_, [](const Block& block) { return block.log_s; })};
  double deviation = median_over(baseline_, [&](const Block& block) { return std::fabs(block.log_s - level.centre); });
  // Few blocks tell little about the spread: it may be larger.
  double correction = 1.4826 * (1 + 4 / static_cast<double>(baseline_.size()));
  level.spread = std::max(kSmallestSpread, correction * deviation);
  return level;
}

std::optional<Drift> DriftWatch::add(Block block) {
  if (baseline_.size() < kFewest) {
    baseline_.push_back(std::move(block));
    return std::nullopt;
  }
  Level own = level();
  double z = (block.log_s - own.centre) / own.spread;
  // Half of what is looked for: less than that brings the sum back to 0.
  double allowance = std::max(1.0, 0.5 * std::log(kSmallest) / own.spread);
  double above = std::min(z, kFarthest) - allowance;
  if (block.log_s > std::ranges::max(baseline_, {}, &Block::log_s).log_s + std::log(kApart))
    above = std::max(above, kCertain / kApartBlocks);
  slower_ = std::max(0.0, slower_ + above);
  faster_ = std::max(0.0, faster_ + std::min(-z, kFarthest) - allowance);
  if (slower_ == 0) forget_slow();
  if (slower_ > 0) {
    if (slow_.empty()) slow_since_ = block.first_step;
    slow_seconds_ += block.seconds;
    if (slow_.size() == kBaseline) slow_.erase(slow_.begin());
    slow_.push_back(block);
  }
  // Suspected blocks that prove to be noise join the baseline; blocks that may be a drift must not join it.
  if (baseline_.size() + suspected_.size() < kBaseline) suspected_.push_back(std::move(block));
  if (slower_ == 0 && faster_ == 0)
    for (Block& cleared : std::exchange(suspected_, {})) baseline_.push_back(std::move(cleared));
  if (faster_ >= kCertain) begin_again();  // whatever slowed it before is over
  if (slower_ < kCertain) return std::nullopt;
  Drift found = drift(own);
  if (slow_seconds_ < kLeastSeconds || found.now_s < kSmallest * found.before_s) return std::nullopt;
  if (is_explained_by_others(found)) {
    slower_ = kCertain;  // no more: it must end soon after the others do
    if (slow_seconds_ < kLongShared) return std::nullopt;
    found.cause = DriftCause::other_programs;
    found.rank.reset();
  }
  begin_again();
  return found;
}

Drift DriftWatch::drift(const Level& own) const {
  Drift found{.since_step = slow_since_,
              .step = slow_.back().first_step + static_cast<int64_t>(kBlock) - 1,
              .before_s = std::exp(own.centre),
              .now_s = std::exp(median_over(slow_, [](const Block& block) { return block.log_s; }))};
  name_cause(found);
  return found;
}

void DriftWatch::name_cause(Drift& found) const {
  double longer = found.now_s - found.before_s;
  auto grown = [&](auto numbers) {
    std::vector<double> now = medians_by_rank(slow_, numbers), before = medians_by_rank(baseline_, numbers);
    for (size_t rank = 0; rank < now.size(); ++rank) now[rank] -= before[rank];
    return now;
  };
  std::vector<double> own = grown(&Block::own_s), messages = grown(&Block::message_s), input = grown(&Block::input_s);
  if (own.empty()) return;
  auto largest = std::ranges::max_element(input);
  if (*largest >= kLargerPart * longer) {
    found.cause = DriftCause::input;
    if (is_alone(input, largest)) found.rank = largest - input.begin();
    return;
  }
  if (messages_timed_ == MessagesTimed::no) {
    found.cause = DriftCause::device;
    return;
  }
  // A process that is stopped now and then is stopped in the middle of messages too, and which of its ranks is hit in
  // its own work is a matter of chance: that all ranks take longer for their own work, by about the factor that steps
  // do, tells it from one slow rank, whose peers work as before.
  const double factor = found.now_s / found.before_s;
  std::vector<double> own_before = medians_by_rank(baseline_, &Block::own_s);
  bool is_of_all = true;
  for (size_t rank = 0; rank < own.size(); ++rank)
    is_of_all = is_of_all && own_before[rank] + own[rank] >= std::pow(factor, kLargerPart) * own_before[rank];
  auto slowest = std::ranges::max_element(own);
  if (*slowest >= kLargerPart * longer && is_alone(own, slowest) && !is_of_all) {
    found.cause = DriftCause::one_rank;
    found.rank = slowest - own.begin();
    return;
  }
  if (drift_median(own) >= kLargerPart * longer || is_of_all) {
    auto processor = [](const Block& block) { return block.processor_s; };
    double more_processor = median_over(slow_, processor) / median_over(baseline_, processor) - 1;
    bool is_throttled = more_processor < kLargerPart * growth().with_core;
    found.cause = is_throttled ? DriftCause::processor_time : DriftCause::clocks;
    return;
  }
  if (*std::ranges::min_element(messages) >= kLargerPart * longer) found.cause = DriftCause::collective;
}

// Block by block: in some of them others may take cores, and in some only share memory with the run.
DriftWatch::Growth DriftWatch::growth() const {
  auto grown = [&](const auto& get) { return median_over(slow_, get) / median_over(baseline_, get) - 1; };
  auto mean = [](const Block& block) { return block.seconds / static_cast<double>(kBlock); };
  return {.all = grown(mean),
          .with_core = grown([&](const Block& block) { return std::max(1e-9, mean(block) - block.crowded_out_s); })};
}

// Where a rank was ready without a core for the larger part of it. Threads that help a rank, and cores that two share,
// are not seen so: where the machine became more crowded, or has been so all the time, up to what that can cost.
bool DriftWatch::is_explained_by_others(const Drift& found) const {
  auto crowding = [](const Block& block) { return block.crowding; };
  double now = median_over(slow_, crowding), before = median_over(baseline_, crowding);
  auto crowded_out = [](const Block& block) { return block.crowded_out_s; };
  const double now_out = median_over(slow_, crowded_out), longer_out = now_out - median_over(baseline_, crowded_out);
  const double longer = found.now_s - found.before_s;
  const Growth growth = this->growth();
  if (longer_out >= kLargerPart * longer || growth.with_core < (1 - kLargerPart) * growth.all) return true;
  const double others = median_over(slow_, [](const Block& block) { return block.others; });
  if (found.cause == DriftCause::clocks && others > kOthersAtWork) return found.now_s <= kSharedLoss * found.before_s;
  bool is_more = now > kHalfFull && now > before + kMoreCrowded;
  if (!is_more && now <= kCrowded) return false;
  // All ranks work as before and wait in messages. Others slow a message by the core that it waits for on one rank
  // after the other: where that is measured, it tells, and how many they are does not. Ranks that wait for cores longer
  // than the message is late need only wait at other moments than before.
  if (found.cause == DriftCause::collective && now_out > 0)
    return longer <= now_out ||
           longer_out * static_cast<double>(baseline_.front().own_s.size()) >= kLargerPart * longer;
  bool is_of_all = found.cause == DriftCause::processor_time || found.cause == DriftCause::clocks ||
                   found.cause == DriftCause::unknown;
  double most = (is_more || is_of_all ? kSharedLoss : kChosenLoss) * std::max(1.0, now / std::max(before, kHalfFull));
  return found.now_s <= most * found.before_s;
}

void DriftWatch::forget_slow() {
  slow_.clear();
  slow_seconds_ = 0;
}

void DriftWatch::begin_again() {
  baseline_.clear();
  forget_slow();
  suspected_.clear();
  slower_ = faster_ = 0;
}

}  // namespace sextant
