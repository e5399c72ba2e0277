#include "train/rank_position.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/exit_within.h"
#include "base/thread_probe.h"
#include "events/run_event.h"

namespace sextant {

RankPosition::RankPosition(const std::filesystem::path& out, const RankContext& context, const TimeLimits& limits)
    : rank_status(context.transport ? context.transport->rank_status() : alone),
      heartbeat(out, context.rank, rank_status),
      watch({rank_status, context.transport, limits,
             [this, rank = context.rank](const std::string& why) { end_stalled(rank, why); }}),
      out_(out),
      thread_(::gettid()) {}

// Nothing of a rank that hangs can be cleaned up; and what is said about it may hang too, on the same disk.
void RankPosition::end_stalled(int rank, const std::string& stood_still) {
  exit_within(std::chrono::seconds(1), ExitCode::rank_lost);
  std::optional<ThreadProbe> probe = probe_thread(::getpid(), thread_);
  std::string why = stood_still + (probe ? fmt::format("; its thread {} {}", thread_, probe->text()) : "");
  std::fputs(fmt::format("sextant: rank {} {}; the process ends (train.timeout_s)\n", rank, why).c_str(), stderr);
  heartbeat.fail(why);
  try {
    append_event(out_, {.kind = EventKind::hang,
                        .step = rank_status.seen().step,
                        .text = fmt::format("rank {} {}", rank, why),
                        .details = {{"late_rank", rank}, {"host", own_host_name()}}});
  } catch (const RunError&) {
    // It has been said on standard error.
  }
  ::_exit(number_of(ExitCode::rank_lost));
}

}  // namespace sextant
