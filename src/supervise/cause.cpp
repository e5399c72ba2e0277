#include "supervise/cause.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>

namespace sextant {

namespace {

constexpr CauseInfo kCauses[] = {
#define CAUSE(kind, name, exit_code, response, most, action) \
  {CauseKind::kind, name, exit_code, Response::response, most, action},
#include "supervise/causes.def"
#undef CAUSE
};

constexpr int kShellSignalBase = 128;

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace

std::vector<CauseInfo> cause_table() {
  return {std::begin(kCauses), std::end(kCauses)};
}

const CauseInfo& info_of(CauseKind kind) {
  return kCauses[static_cast<size_t>(kind)];
}

std::string Cause::text() const {
  std::string_view name = info_of(kind).name;
  if (signal != 0) return signal_name(signal);
  if (kind == CauseKind::hang) return fmt::format("{}: {}", name, detail);
  return exit_code < 0 ? std::string(name) : fmt::format("exit code {} ({})", exit_code, name);
}

ExitCode Cause::as_exit_code() const {
  int known = info_of(kind).exit_code;
  bool is_verdict = known < 0 && exit_code == number_of(ExitCode::non_finite);
  for (const ExitMeaning& meaning : exit_meanings())
    if (number_of(meaning.code) == (is_verdict ? exit_code : known)) return meaning.code;
  return ExitCode::rank_lost;
}

Cause cause_of_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.kind = CauseKind::killed, .signal = WTERMSIG(wait_status)};
  int code = WEXITSTATUS(wait_status);
  if (code > kShellSignalBase && code - kShellSignalBase < NSIG)
    return {.kind = CauseKind::killed, .exit_code = code, .signal = code - kShellSignalBase};
  // Code 1 is `doctor`'s, which is not what ran here.
  auto known = std::ranges::find_if(
      kCauses, [&](const CauseInfo& info) { return info.exit_code == code && info.kind != CauseKind::unhealthy; });
  return {.kind = known == std::end(kCauses) ? CauseKind::launcher_failed : known->kind, .exit_code = code};
}

}  // namespace sextant
