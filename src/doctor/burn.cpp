#include "doctor/burn.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "comm/collectives.h"
#include "comm/tags.h"
#include "doctor/burn_task.h"

namespace sextant {

namespace {

constexpr int kRepeats = 2;           // of each task on the same data
constexpr double kRounding = 0x1p-6;  // of a digest's size: what another order of bf16 sums may move a projection by

// Of one task in one round, on one rank.
using Repeats = std::array<Digest, kRepeats>;

// The first round of a fault, and the number of comparisons that showed it.
struct Fault {
  int64_t first_round = 0, times = 0;
};

class Judge {
 public:
  void look(const BurnTask& task, int64_t round, const std::vector<Repeats>& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const Repeats& own = ranks[rank];
      if (std::any_of(own.begin(), own.end(), [](const Digest& d) { return d.wrong > 0; }))
        note(rank, task, "wrong results", round);
      if (own[0].bits != own[1].bits) note(rank, task, "different bits from the same data", round);
    }
    task.between() == Between::exact ? compare_bits(task, round, ranks) : compare_sums(task, round, ranks);
  }

  // `hosts` of the ranks, where known.
  std::vector<Finding> findings(const std::vector<std::string>& hosts) const {
    std::vector<Finding> findings;
    for (const auto& [key, fault] : faults_) {
      const auto& [rank, task, what] = key;
      findings.push_back(
          {"burn", task, Health::failure,
           fmt::format("{} in {} comparisons, first in round {}", what, fault.times, fault.first_round),
           "this device computes wrongly without saying so: take it out and have it tested",
           rank < hosts.size() ? fmt::format("rank {} ({})", rank, hosts[rank]) : fmt::format("rank {}", rank)});
    }
    return findings;
  }

 private:
  void note(size_t rank, const BurnTask& task, const std::string& what, int64_t round) {
    Fault& fault = faults_[{rank, task.name(), what}];
    if (fault.times++ == 0) fault.first_round = round;
  }

  // With two ranks nobody knows which is right: both are named.
  void compare_bits(const BurnTask& task, int64_t round, const std::vector<Repeats>& ranks) {
    std::map<uint64_t, size_t> votes;
    for (const Repeats& own : ranks) ++votes[own[0].bits];
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (2 * votes[ranks[rank][0].bits] <= ranks.size()) note(rank, task, "other bits than most ranks", round);
  }

  void compare_sums(const BurnTask& task, int64_t round, const std::vector<Repeats>& ranks) {
    std::vector<char> far(ranks.size(), 0);
    for (size_t j = 0; j < kProjections; ++j) {
      std::vector<double> sums;
      for (const Repeats& own : ranks) sums.push_back(own[0].projections[j]);
      std::nth_element(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 2), sums.end());
      double middle = sums[sums.size() / 2];
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        const Digest& own = ranks[rank][0];
        if (!(std::abs(own.projections[j] - middle) <= kRounding * own.size)) far[rank] = 1;
      }
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (far[rank]) note(rank, task, "other results than most ranks, beyond rounding", round);
  }

  std::map<std::tuple<size_t, std::string, std::string>, Fault> faults_;
};

Repeats burn_once(BurnTask& task, uint64_t seed) {
  Repeats repeats;
  task.fill(seed);
  for (Digest& digest : repeats) {
    task.run();
    digest = task.digest();
  }
  return repeats;
}

std::vector<Repeats> gathered(const RankContext& context, const Repeats& own) {
  if (!context.transport) return {own};
  std::vector<Repeats> all(static_cast<size_t>(context.transport->size()));
  std::vector<int> ranks(all.size());
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  Channel channel{*context.transport, kHostTag};
  all_gather(channel, group_of_ranks(ranks, context.rank), std::as_bytes(std::span(&own, 1)),
             std::as_writable_bytes(std::span(all)));
  return all;
}

// The decision of rank 0, which every rank follows.
bool decided(const RankContext& context, bool go_on) {
  if (!context.transport) return go_on;
  std::vector<int> ranks(static_cast<size_t>(context.transport->size()));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  Channel channel{*context.transport, kHostTag};
  uint8_t word = go_on;
  broadcast(channel, group_of_ranks(ranks, context.rank), std::as_writable_bytes(std::span(&word, 1)), 0);
  return word != 0;
}

}  // namespace

std::vector<Finding> burn(Executor& executor, const RankContext& context, const BurnOptions& options) {
  int ranks = context.transport ? context.transport->size() : 1;
  std::vector<std::unique_ptr<BurnTask>> tasks;
  tasks.push_back(burn_gemms(executor, ranks));
  tasks.push_back(burn_attention(executor, ranks));
  if (ranks > 1) tasks.push_back(burn_collectives(executor, context, ranks));
  Judge judge;
  auto start = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  int64_t round = 0;
  do {
    for (const auto& task : tasks)
      judge.look(*task, round,
                 gathered(context, burn_once(*task, (options.seed << 32) + static_cast<uint64_t>(round) * 1000)));
    ++round;
    if (context.rank == 0) options.progress(round, seconds());
  } while (decided(context, seconds() < options.seconds && !options.stop()));
  if (context.rank > 0) return {};
  std::vector<Finding> findings = judge.findings(options.hosts);
  if (findings.empty())
    findings.push_back({"burn",
                        "corruption",
                        Health::ok,
                        fmt::format("none in {} rounds of GEMMs, attention{} on {}, {:.0f} s", round,
                                    ranks > 1 ? " and collectives" : "",
                                    ranks > 1 ? fmt::format("{} ranks", ranks) : "one rank", seconds()),
                        {}});
  return findings;
}

}  // namespace sextant
