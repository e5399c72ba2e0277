#include "train/health/failure_record.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/corruption.h"
#include "comm/ranks.h"
#include "events/event_log.h"
#include "train/health/hang_report.h"
#include "train/health/heartbeat.h"

namespace sextant {

void record_hang(const std::filesystem::path& out, const LogSection& log) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  std::optional<HangReport> report =
      hang_report(last_beats(out), std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  if (!report) return;
  std::fputs(fmt::format("sextant: {}\n", report->text()).c_str(), stderr);
  EventLog(out, log.on_event).record(report->event());
}

void record_failure(const std::filesystem::path& out, const LogSection& log, int rank, int64_t step,
                    const std::exception& error) {
  EventLog events(out, log.on_event);
  if (const auto* corruption = dynamic_cast<const Corruption*>(&error)) {
    const CorruptionFacts& facts = corruption->facts();
    EventDetails details{{"check", facts.check}, {"op", facts.op}};
    if (facts.rank) details.set("rank", int64_t{*facts.rank});
    if (facts.layer >= 0) details.set("layer", int64_t{facts.layer});
    if (!facts.verdict.empty()) details.set("verdict", facts.verdict);
    events.record({.kind = EventKind::corruption, .step = step, .text = error.what(), .details = std::move(details)});
  }
  events.record({.kind = EventKind::failure,
                 .step = step,
                 .text = error.what(),
                 .details = {{"rank", rank}, {"exit_code", number_of(exit_code_of(error))}}});
}

}  // namespace sextant
