// Whether what a run has recorded of a step happens again: transient, persistent or reproducible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/replay.h"

namespace sextant {

enum class ReplayVerdict : uint8_t {
  reproducible,  // every execution here gives what the run recorded
  transient,     // executions here agree with each other, and not with the record
  persistent,    // executions here do not agree with each other
  unrecorded,    // they agree, and the run has no record of the step
};
std::string_view name_of(ReplayVerdict verdict);

struct Judgement {
  ReplayVerdict verdict = ReplayVerdict::unrecorded;
  bool bit_equal = false;  // to the record
  double difference = 0;   // relative, the larger of loss and gradient norm; infinite where only one is finite
  std::string text;        // a sentence
};

// Numbers of other meshes, devices and precisions differ by rounding: up to this, relative, they count as the same.
Judgement judge(const std::optional<RecordedStep>& recorded, const std::vector<Execution>& executions, double rounding);

}  // namespace sextant
