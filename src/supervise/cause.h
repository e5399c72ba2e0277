// Why an attempt at a run ended, and what the supervisor does then: one table (causes.def).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"

namespace sextant {

enum class CauseKind : uint8_t {
#define CAUSE(kind, name, exit_code, response, most, action) kind,
#include "supervise/causes.def"
#undef CAUSE
};

enum class Response : uint8_t { done, retry, give_up };

struct CauseInfo {
  CauseKind kind;
  std::string_view name;
  int exit_code;  // of the run; -1: it is known by something else
  Response response;
  int64_t most;  // how often it is answered so; 0: --retries
  std::string_view action;
};
std::vector<CauseInfo> cause_table();
const CauseInfo& info_of(CauseKind kind);

struct Cause {
  CauseKind kind = CauseKind::finished;
  int exit_code = -1;       // of the process, where it had one
  int signal = 0;           // that ended it; 0: none
  std::string detail = {};  // of a hang: what stood still

  std::string text() const;       // "exit code 7 (rank lost)", "SIGKILL", "hang: rank 1 …"
  ExitCode as_exit_code() const;  // what the supervisor returns when it gives up
};

// From the status that waitpid gives. A launcher hands on the signal that ended a rank as 128 + signal.
Cause cause_of_status(int wait_status);

}  // namespace sextant
