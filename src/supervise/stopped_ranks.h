// StoppedRanks: ranks on this host whose process a signal has stopped (SIGSTOP) and nobody lets go on. A heartbeat that
// goes still may be a disk that pauses, and has long; this is certain, and need not wait for it.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "supervise/child_process.h"

namespace sextant {

class StoppedRanks {
 public:
  using Clock = std::chrono::steady_clock;
  // `binary`: what ranks run; they are found below this process.
  StoppedRanks(std::filesystem::path binary, std::chrono::milliseconds patience)
      : binary_(std::move(binary)), patience_(patience) {}

  // A process that was stopped whenever it was looked at for so long, and used no time between.
  std::optional<pid_t> look(Clock::time_point now) {
    std::map<pid_t, Stop> still;
    std::optional<pid_t> found;
    for (const LivingProcess& process : living_descendants(::getpid())) {
      if (process.state != 'T' || !is_rank(process.id)) continue;
      auto before = stops_.find(process.id);
      bool went_on = before == stops_.end() || before->second.used != process.used;
      Stop stop = went_on ? Stop{process.used, now} : before->second;
      if (now - stop.since >= patience_) found = process.id;
      still.emplace(process.id, stop);
    }
    stops_ = std::move(still);
    return found;
  }

 private:
  struct Stop {
    uint64_t used = 0;  // of the processor
    Clock::time_point since;
  };
  bool is_rank(pid_t process) const {
    std::error_code gone;
    return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), gone) == binary_;
  }

  std::filesystem::path binary_;
  std::chrono::milliseconds patience_;
  std::map<pid_t, Stop> stops_;
};

}  // namespace sextant
