// Cause of a step that was not finite, judged from its replay: hardware that failed once, hardware that fails again, or
// data and software. `sextant replay --bisect --json` runs on the device of the run and, where there is one, on another
// device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "events/run_event.h"
#include "supervise/cause.h"

namespace sextant {

// Output of `sextant replay --bisect --json`, parsed.
struct ReplayFacts {
  bool finite = true;    // loss and gradient norm of every execution
  bool agree = true;     // the executions with one another
  std::string first_op;  // the first output that was not finite: op, layer and rank; empty: none
  int64_t layer = -1;
  std::string document;  // of the token in it; empty: not known
};
// Nothing where the text is not what replay prints.
std::optional<ReplayFacts> parse_replay(std::string_view text);

struct StepVerdict {
  CauseKind cause = CauseKind::non_finite;  // with its policy; non_finite itself: nothing is known
  int64_t step = 0;
  std::string text;
  ReplayFacts facts;

  std::string_view name() const;  // transient, persistent, reproducible, unknown
  RunEvent event() const;
};

// `where` and `elsewhere` are words: "on this host", "on the CPU". Without a second replay hardware that always fails
// and software look alike, which the text says.
StepVerdict judge_step(int64_t step, const std::optional<ReplayFacts>& here, std::string_view where,
                       const std::optional<ReplayFacts>& there, std::string_view elsewhere);

// The first of the last steps in metrics.jsonl that are not finite, one behind the other; nothing where the last is.
std::optional<int64_t> first_non_finite_step(const std::filesystem::path& out);

}  // namespace sextant
