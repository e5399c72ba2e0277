#include "train/health/hang_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/gpu_states.h"
#include "base/thread_probe.h"

namespace sextant {

namespace {

constexpr int64_t kSilentMs = 3000;  // between two beats of a rank that lives are 500

const LastBeat* beat_of_rank(const std::vector<LastBeat>& beats, int rank) {
  auto found = std::ranges::find(beats, rank, &LastBeat::rank);
  return found == beats.end() ? nullptr : &*found;
}

// Facts about a rank besides its own heartbeat.
struct Seen {
  std::optional<ThreadProbe> probe = {};  // where its process is on this host
  bool here = false;
  bool silent = false;   // the others still write heartbeats, and it does not
  bool is_over = false;  // none of the processes is left: the files alone tell
  bool running = true;   // it has not ended, by itself or by others: what it wrote last need not be all

  // The rank itself is the cause, whatever its last record says about waiting for another rank.
  bool is_cause() const {
    return running && (silent || (probe && probe->is_stopped()) || (here && !probe && !is_over));
  }
};

class Looker {
 public:
  explicit Looker(const std::vector<LastBeat>& beats) : host_(own_host_name()) {
    for (const LastBeat& beat : beats) {
      newest_ms_ = std::max(newest_ms_, beat.time_ms);
      if (beat.host != host_ || probe_of(beat)) is_over_ = false;
    }
  }
  Seen at(const LastBeat& beat) const {
    Seen seen{.here = beat.host == host_,
              .silent = beat.time_ms + kSilentMs < newest_ms_,
              .is_over = is_over_,
              .running = beat.state == "running"};
    if (seen.here) seen.probe = probe_of(beat);
    return seen;
  }

 private:
  static std::optional<ThreadProbe> probe_of(const LastBeat& beat) {
    return probe_thread(static_cast<pid_t>(beat.pid), static_cast<pid_t>(beat.thread));
  }
  std::string host_;
  int64_t newest_ms_ = 0;
  bool is_over_ = true;
};

std::string where_text(const LastBeat& beat) {
  std::string where = beat.snapshot.text();
  return where.empty() ? "before its first step" : where;
}

std::string seconds_text(int64_t ms) {
  return fmt::format("{:.1f} s", static_cast<double>(std::max<int64_t>(0, ms)) / 1000);
}

std::string waiting_text(const LastBeat& beat, int64_t now_ms) {
  std::string since = beat.snapshot.waiting_since_ms > 0
                          ? fmt::format(" for {}", seconds_text(now_ms - beat.snapshot.waiting_since_ms))
                          : "";
  return fmt::format("rank {} on {} has waited{} for rank {}, {} (op {})", beat.rank, beat.host, since,
                     beat.snapshot.waiting_for, where_text(beat), beat.snapshot.sequence);
}

std::string late_text(const LastBeat& beat, const Seen& seen, int64_t now_ms) {
  std::string text = fmt::format("rank {} on {} is late: last seen {} (op {})", beat.rank, beat.host, where_text(beat),
                                 beat.snapshot.sequence);
  if (beat.state == "failed") text += fmt::format("; it failed: {}", beat.reason);
  if (beat.state == "finished" || beat.state == "ended") text += "; it has ended";
  if (beat.state != "running") return text;
  if (seen.silent) text += fmt::format("; no heartbeat for {}", seconds_text(now_ms - beat.time_ms));
  if (seen.probe) {
    text += fmt::format("; its thread {} of process {} {}", beat.thread, beat.pid, seen.probe->text());
    std::string gpus = gpu_states();
    return gpus.empty() ? text : fmt::format("{}; {}", text, gpus);
  }
  return text + (seen.here ? fmt::format("; its process {} is gone", beat.pid)
                           : fmt::format("; its process {} is on another host and cannot be looked at", beat.pid));
}

// Of those that wait, the one that has for longest.
const LastBeat* longest_wait(const std::vector<LastBeat>& beats) {
  const LastBeat* first = nullptr;
  for (const LastBeat& beat : beats)
    if (beat.snapshot.waiting_for >= 0 && beat.state != "finished" &&
        (!first || beat.snapshot.waiting_since_ms < first->snapshot.waiting_since_ms))
      first = &beat;
  return first;
}

}  // namespace

std::string HangReport::text() const {
  return fmt::format("{}", fmt::join(chain, "; "));
}

RunEvent HangReport::event() const {
  RunEvent event{.kind = EventKind::hang,
                 .text = text(),
                 .details = {{"late_rank", late_rank}, {"host", late_host}, {"chain", chain}}};
  if (step > 0) event.step = step;
  return event;
}

std::optional<HangReport> hang_report(const std::vector<LastBeat>& beats, int64_t now_ms) {
  if (beats.empty()) return std::nullopt;
  Looker look(beats);
  const LastBeat* at = longest_wait(beats);
  HangReport report;
  std::set<int> met;
  while (at && at->snapshot.waiting_for >= 0 && !look.at(*at).is_cause()) {
    if (!met.insert(at->rank).second) {
      // They wait for one another, as far as their last beats tell: the one that has come least far is behind.
      at = &*std::ranges::min_element(beats, {}, [](const LastBeat& beat) { return beat.snapshot.sequence; });
      break;
    }
    report.chain.push_back(waiting_text(*at, now_ms));
    const LastBeat* next = beat_of_rank(beats, at->snapshot.waiting_for);
    if (!next) break;
    at = next;
  }
  if (!at)  // nobody waits: one that has gone silent, or stands still by itself
    for (const LastBeat& beat : beats)
      if (!at && beat.state == "running" && look.at(beat).is_cause()) at = &beat;
  if (!at) return std::nullopt;
  report.late_rank = at->rank;
  report.late_host = at->host;
  report.step = at->snapshot.step;
  report.chain.push_back(late_text(*at, look.at(*at), now_ms));
  return report;
}

}  // namespace sextant
