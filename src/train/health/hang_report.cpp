#include "train/health/hang_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/thread_probe.h"

namespace sextant {

namespace {

constexpr int64_t kSilentMs = 3000;  // between two beats of a rank that lives are 500

const LastBeat* beat_of_rank(const std::vector<LastBeat>& beats, int rank) {
  auto found = std::ranges::find(beats, rank, &LastBeat::rank);
  return found == beats.end() ? nullptr : &*found;
}

// What is known of a rank beside what it wrote itself.
struct Seen {
  std::optional<ThreadProbe> probe;  // where its process is on this host
  bool here = false;
  bool silent = false;  // it no longer writes heartbeats

  // What it wrote last, that it waits for another, is not what keeps it.
  bool stands_by_itself() const { return silent || (probe && probe->is_stopped()) || (here && !probe); }
};

Seen look_at(const LastBeat& beat, int64_t newest_ms) {
  Seen seen{.probe = {}, .here = beat.host == own_host_name(), .silent = beat.time_ms + kSilentMs < newest_ms};
  if (seen.here) seen.probe = probe_thread(static_cast<pid_t>(beat.pid), static_cast<pid_t>(beat.thread));
  return seen;
}

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
  if (seen.probe)
    return text + fmt::format("; its thread {} of process {} {}", beat.thread, beat.pid, seen.probe->text());
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
  // The clocks of hosts agree but for a little; a run whose ranks have all gone silent is measured by our own.
  int64_t newest = now_ms;
  const LastBeat* at = longest_wait(beats);
  HangReport report;
  std::set<int> met;
  while (at && at->snapshot.waiting_for >= 0 && !look_at(*at, newest).stands_by_itself() && at->state == "running") {
    if (!met.insert(at->rank).second) {
      // They wait for one another, as far as their last beats tell: the one that has come least far is behind.
      auto behind = std::ranges::min_element(beats, {}, [](const LastBeat& b) { return b.snapshot.sequence; });
      at = &*behind;
      break;
    }
    report.chain.push_back(waiting_text(*at, now_ms));
    const LastBeat* next = beat_of_rank(beats, at->snapshot.waiting_for);
    if (!next) break;
    at = next;
  }
  if (!at)  // nobody waits: one that has gone silent, or stands still by itself
    for (const LastBeat& beat : beats)
      if (!at && beat.state == "running" && look_at(beat, newest).stands_by_itself()) at = &beat;
  if (!at) return std::nullopt;
  report.late_rank = at->rank;
  report.late_host = at->host;
  report.step = at->snapshot.step;
  report.chain.push_back(late_text(*at, look_at(*at, newest), now_ms));
  return report;
}

}  // namespace sextant
