#include "train/health/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/health/crowding.h"

namespace sextant {

namespace {

constexpr int kLooks = 2, kNearMedianLooks = 20, kForgetLooks = 5;
constexpr double kMuchMore = 1.5, kFarMore = 2.5, kShareOfStep = 0.1, kLeastSeconds = 0.002, kAsleepShare = 0.5;

double upper_median(std::vector<double> numbers) {
  auto middle = numbers.begin() + static_cast<ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

SlowReason reason_of(const RankTimes& slow, const RankTimes& others, double excess) {
  double half = excess / 2;
  if (slow.input - others.input > half) return SlowReason::input;
  if (slow.throttled - others.throttled > half) return SlowReason::throttled;
  if (slow.run_delay - others.run_delay > half) return SlowReason::no_core;
  if (slow.major_faults - others.major_faults >= 1) return SlowReason::page_faults;
  if (slow.cpu - others.cpu > half) return SlowReason::compute;
  if (slow.blocks_read - others.blocks_read >= 1) return SlowReason::disk;
  return SlowReason::asleep;
}

std::string why_text(SlowReason reason, const RankTimes& slow) {
  switch (reason) {
    case SlowReason::input:
      return fmt::format("its data take {:.1f} ms of a step", slow.input * 1e3);
    case SlowReason::no_core:
      return fmt::format("it is ready and has no core for {:.1f} ms of a step: other processes use them",
                         slow.run_delay * 1e3);
    case SlowReason::throttled:
      return fmt::format("the CPU limit of its cgroup stops it for {:.1f} ms of a step", slow.throttled * 1e3);
    case SlowReason::page_faults:
      return fmt::format("{:.0f} pages of a step come from disk or swap: memory is short", slow.major_faults);
    case SlowReason::disk:
      return fmt::format("it reads {:.0f} blocks from disk in a step", slow.blocks_read);
    case SlowReason::compute:
      return fmt::format("it computes for {:.1f} ms of a step: a slower core, or more work", slow.cpu * 1e3);
    case SlowReason::asleep:
      return fmt::format(
          "it is on a core for {:.1f} ms of a step only: it sleeps, is stopped now and then, or waits for "
          "something that is no rank",
          slow.cpu * 1e3);
  }
  return "";
}

}  // namespace

std::string_view name_of(SlowReason reason) {
  switch (reason) {
    case SlowReason::input:
      return "slow input";
    case SlowReason::no_core:
      return "no core";
    case SlowReason::throttled:
      return "throttled";
    case SlowReason::page_faults:
      return "page faults";
    case SlowReason::disk:
      return "disk";
    case SlowReason::compute:
      return "slow compute";
    case SlowReason::asleep:
      return "asleep";
  }
  return "";
}

std::optional<Straggler> find_straggler(const std::vector<RankTimes>& ranks, const std::vector<int>& groups) {
  std::optional<Straggler> worst;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    RankTimes others;
    std::vector<size_t> same;
    for (size_t other = 0; other < ranks.size(); ++other)
      if (other != rank && groups[other] == groups[rank]) same.push_back(other);
    if (same.empty()) continue;
    auto median = [&](auto number) {
      std::vector<double> numbers;
      for (size_t other : same) numbers.push_back(number(ranks[other]));
      return upper_median(std::move(numbers));
    };
    double own = ranks[rank].own(), theirs = median([](const RankTimes&t) { return t.own(); }), excess = own - theirs;
    if (own < kMuchMore * theirs || excess < kShareOfStep * ranks[rank].step || excess < kLeastSeconds) continue;
    if (worst && worst->own - worst->others >= excess) continue;
    others.input = median([](const RankTimes& t) { return t.input; });
    others.cpu = median([](const RankTimes& t) { return t.cpu; });
    others.run_delay = median([](const RankTimes& t) { return t.run_delay; });
    others.throttled = median([](const RankTimes& t) { return t.throttled; });
    others.major_faults = median([](const RankTimes& t) { return t.major_faults; });
    others.blocks_read = median([](const RankTimes& t) { return t.blocks_read; });
    SlowReason reason = reason_of(ranks[rank], others, excess);
    // Where its peers too are off their cores for most of their own work, something stops all of them, and which is hit
    // most is a matter of chance: a drift.
    double peers_asleep = theirs - others.input - others.cpu - others.run_delay;
    if (reason == SlowReason::asleep && peers_asleep > kAsleepShare * theirs) continue;
    worst =
        Straggler{.rank = static_cast<int>(rank),
                  .own = own,
                  .others = theirs,
                  .reason = reason,
                  .text = fmt::format("rank {} is slow ({}): its own work takes {:.1f} ms of a step, that of its peers "
                                      "{:.1f} ms; {}",
                                      rank, name_of(reason), own * 1e3, theirs * 1e3, why_text(reason, ranks[rank]))};
  }
  return worst;
}

bool StragglerWatch::is_near_median(const Straggler& slow, const RankTimes& times) {
  if (times.crowding <= kCrowded) return false;
  // A rank also sleeps while another of its threads has no core.
  return slow.reason == SlowReason::no_core || slow.reason == SlowReason::compute ||
         (slow.reason == SlowReason::asleep && slow.own < kFarMore * slow.others);
}

std::optional<Straggler> StragglerWatch::look(const std::optional<RankTimes>& own, int program, HostGroup& group) {
  auto ranks = static_cast<size_t>(group.size()), rank = static_cast<size_t>(group.rank());
  constexpr size_t kFieldCount = std::size(kRankTimes),
                   kWidth = kFieldCount + 2;  // whether there are any, the Program
  std::vector<double> all(ranks * kWidth, 0);
  if (own)
    for (size_t field = 0; field < kFieldCount; ++field) all[rank * kWidth + field] = (*own).*kRankTimes[field];
  all[rank * kWidth + kFieldCount] = own ? 1 : 0;
  all[rank * kWidth + kFieldCount + 1] = program;
  group.sum(all);
  if (!group.leads()) return std::nullopt;
  std::vector<RankTimes> of_ranks(ranks);
  std::vector<int> programs(ranks);
  for (size_t i = 0; i < ranks; ++i) {
    if (all[i * kWidth + kFieldCount] == 0) return std::nullopt;
    for (size_t field = 0; field < kFieldCount; ++field) of_ranks[i].*kRankTimes[field] = all[i * kWidth + field];
    programs[i] = static_cast<int>(all[i * kWidth + kFieldCount + 1]);
  }
  return judge(of_ranks, programs);
}

std::optional<Straggler> StragglerWatch::judge(const std::vector<RankTimes>& ranks, const std::vector<int>& programs) {
  std::optional<Straggler> now = find_straggler(ranks, programs);
  std::optional<int> before = std::exchange(seen_, now ? std::optional(now->rank) : std::nullopt);
  times_seen_ = before == seen_ ? times_seen_ + 1 : 1;
  looks_without_ = now ? 0 : looks_without_ + 1;
  if (looks_without_ >= kForgetLooks) told_.reset();
  if (!now || times_seen_ < (is_near_median(*now, ranks[static_cast<size_t>(now->rank)]) ? kNearMedianLooks : kLooks))
    return std::nullopt;
  std::pair told{now->rank, now->reason};
  if (told_ == told) return std::nullopt;
  told_ = told;
  return now;
}

}  // namespace sextant
