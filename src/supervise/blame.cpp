#include "supervise/blame.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "supervise/culprit.h"
#include "supervise/launcher_report.h"
#include "train/health/heartbeat.h"

namespace sextant {

void blame(Attempt& attempt, const std::filesystem::path& out, std::string_view printed) {
  if (attempt.cause.kind == CauseKind::unhealthy) return;
  std::vector<LastBeat> beats = last_beats(out);
  if (attempt.rank) {  // a report of the hang has named it
    auto late = std::ranges::find(beats, *attempt.rank, &LastBeat::rank);
    if (late != beats.end()) attempt.host = late->host;
    return;
  }
  // Two replicas that differ: whoever found it is not to blame.
  if (attempt.cause.kind == CauseKind::corruption && !attempt.corrupt_rank) return;
  std::optional<LastBeat> culprit = culprit_of(beats);
  if (std::optional<LostRank> lost = lost_rank_in(printed)) {
    attempt.rank = lost->rank;
    attempt.host = lost->host;
    if (auto beat = std::ranges::find(beats, lost->rank, &LastBeat::rank); beat != beats.end())
      attempt.host = beat->host;  // by the name that it has elsewhere
    if (!attempt.corrupt_rank) return;
  }
  // Who found a fault need not be who has it.
  if (auto named = std::ranges::find(beats, attempt.corrupt_rank,
                                     [](const LastBeat& beat) { return std::optional<int64_t>(beat.rank); });
      attempt.corrupt_rank && named != beats.end())
    culprit = *named;
  if (!culprit) return;
  attempt.rank = culprit->rank;
  attempt.host = culprit->host;
}

}  // namespace sextant
