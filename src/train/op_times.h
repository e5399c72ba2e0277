// Times of ops of a run: OUT/ops/rank-N.jsonl has a line for each step that was timed op by op (train --profile,
// log.profile_every), on every rank. A step that is run again has several lines; the last one counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/trace.h"

namespace sextant {

inline constexpr std::string_view kOpTimesFolder = "ops";
inline constexpr std::string_view kPlanFile = "plan.json";  // what was predicted of the run, by op too

struct OpTimesOf {
  int64_t step = 0;
  int rank = 0;
  int stage = 0;  // the rank's place in the pipeline
};

// {"step":100,"rank":0,"stage":0,"ops":[["linear","layers.*.attn.qkv",4,0.0012],…]}: op, path of all layers, how many
// there were, seconds. RunError where it cannot be written.
void append_op_times(const std::filesystem::path& out, const OpTimesOf& of, const Trace& trace);

}  // namespace sextant
