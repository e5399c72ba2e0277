#include "exec/sim/simulate.h"

#include <algorithm>

#include "base/error.h"
#include "exec/sim/rank_walk.h"

namespace sextant {

double RankTime::total() const {
  double sum = compute + update + bubble + host;
  for (const auto& [axes, seconds] : exposed) sum += seconds;
  return sum;
}

SimResult simulate(std::span<const Program> programs, Pricer& pricer, const SimOptions& options) {
  std::vector<RankWalk> ranks;
  ranks.reserve(programs.size());
  for (const Program& program : programs) ranks.emplace_back(program, pricer, options);
  StageMessages messages;
  for (bool moved = true; moved;) {
    moved = false;
    for (RankWalk& rank : ranks)
      if (!rank.done()) moved = rank.advance(messages) || moved;
  }
  SimResult result;
  for (const RankWalk& rank : ranks) {
    BUG_IF(!rank.done(), "a simulated rank waits for a message that no rank sends");
    result.seconds = std::max(result.seconds, rank.now());
  }
  double least_idle = 1e300;
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].finish(result.seconds);
    result.ranks.push_back(ranks[i].time());
    if (ranks[i].time().bubble < least_idle) least_idle = ranks[i].time().bubble, result.slowest = static_cast<int>(i);
    Trace& trace = ranks[i].trace();
    result.trace.insert(result.trace.end(), std::make_move_iterator(trace.begin()),
                        std::make_move_iterator(trace.end()));
  }
  // The slowest of many devices sets the pace of all.
  if (!programs.empty()) result.seconds *= slowest_of(pricer.efficiency(), programs.front().mesh.world_size());
  return result;
}

}  // namespace sextant
