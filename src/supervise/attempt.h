// One attempt at a run: when it started, trained and ended, and by what.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "supervise/cause.h"

namespace sextant {

using WallTime = std::chrono::system_clock::time_point;  // files and events of other processes have these

// Where the time of an interruption goes, in seconds.
struct LostSeconds {
  double detecting = 0;  // from the last finished step until the failure is known: the step that was lost, time-outs
  double ending = 0;     // until every process is gone
  double waiting = 0;    // back-off
  double preflight = 0;
  double starting = 0;  // processes, data and checkpoint, until the first step begins

  double sum() const { return detecting + ending + waiting + preflight + starting; }
  LostSeconds& operator+=(const LostSeconds& other) {
    detecting += other.detecting;
    ending += other.ending;
    waiting += other.waiting;
    preflight += other.preflight;
    starting += other.starting;
    return *this;
  }
};

struct Attempt {
  int64_t number = 1;
  std::string mesh = {};  // where it was chosen by the supervisor
  WallTime started, ended;
  std::optional<WallTime> trained = {};  // when its first step began
  int64_t from_step = -1;                // steps done before that
  int64_t done_step = -1;                // the last in metrics.jsonl when it ended
  int64_t at_step = 0;                   // where ranks were last seen
  Cause cause = {};
  std::optional<int> rank = {};  // by which it failed, and its host
  std::string host = {};
  std::optional<int64_t> corrupt_rank = {};  // that a check found to be wrong
  std::optional<int> told_code = {};         // the exit code that a rank told of first, and why
  std::string told = {};
  bool says_it_is_done = false;  // by an event: all steps are done and saved
  bool says_it_leaves = false;   // so, or stopped as it was asked to
  LostSeconds lost = {};         // by its end, and before the next one trains
};

inline double seconds_between(WallTime from, WallTime to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace sextant
