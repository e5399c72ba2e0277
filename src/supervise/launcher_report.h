// The message of mpirun about a rank that a signal ended: mpirun knows first, and the rank itself can report nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sextant {

struct LostRank {
  int rank = 0;
  std::string host;
};

// The first such line in the output of an attempt, as Open MPI writes it ("mpirun noticed that process rank 1 with PID
// 77 on node n2 exited on signal 9 (Killed)."); nothing where there is none.
std::optional<LostRank> lost_rank_in(std::string_view output);

}  // namespace sextant
