#include "supervise/culprit.h"

#include <algorithm>
#include <set>

namespace sextant {

namespace {

const LastBeat* beat_of(const std::vector<LastBeat>& beats, int rank) {
  auto found = std::ranges::find(beats, rank, &LastBeat::rank);
  return found == beats.end() ? nullptr : &*found;
}

// A rank that gave up waiting names whom it waited for; that one may have waited itself.
const LastBeat& end_of_waits(const std::vector<LastBeat>& beats, const LastBeat& first) {
  std::set<int> met;
  const LastBeat* at = &first;
  while (at->snapshot.waiting_for >= 0 && met.insert(at->rank).second) {
    const LastBeat* next = beat_of(beats, at->snapshot.waiting_for);
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

}  // namespace

std::optional<LastBeat> culprit_of(const std::vector<LastBeat>& beats) {
  // First those that failed by themselves, then those that no longer could say anything.
  for (const char* state : {"failed", "running"}) {
    for (const LastBeat& beat : beats)
      if (beat.state == state && beat.snapshot.waiting_for < 0) return beat;
    for (const LastBeat& beat : beats)
      if (beat.state == state) return end_of_waits(beats, beat);
  }
  return std::nullopt;
}

}  // namespace sextant
