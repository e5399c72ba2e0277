// Meanings of the program's exit status for the script or scheduler that started it. This is the only table: error.h's
// classes and the verbs return these codes, docs/exit-codes.md describes them (tests/app/exit_code_test.cpp compares
// the two).
#pragma once

#include <span>
#include <string_view>

namespace sextant {

enum class ExitCode : int {
  finished = 0,
  unhealthy = 1,  // doctor found a fault
  bad_input = 2,
  run_failed = 3,
  internal_error = 4,
  stopped = 5,
  non_finite = 6,
  rank_lost = 7,
  does_not_fit = 8,
  corruption = 9,
};

constexpr int number_of(ExitCode code) {
  return static_cast<int>(code);
}

struct ExitMeaning {
  ExitCode code;
  std::string_view name;
  std::string_view meaning;
  std::string_view what_next;  // what a supervising script should do
};

std::span<const ExitMeaning> exit_meanings();  // in the order of their numbers

}  // namespace sextant
