// Op: one operation on values. What it means stands in its OpDef (op_def.h); an Op adds operands, constants, and where
// in the step it belongs.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "ir/value.h"

namespace sextant {

struct OpDef;

enum class Phase : uint8_t {
  forward,
  recompute,        // a forward op run again during backward
  input_gradient,   // on the critical path of backward
  weight_gradient,  // may be deferred
  update,           // once per step
};

// The stream an op runs on. Ops of the comm lane run beside the compute lane, in the order of the Program with one
// another. Each starts after the compute ops that stand before it; who must not start before it has ended says so in
// `waits`.
enum class Lane : uint8_t { compute, comm };

enum class RunsFor : uint8_t {
  every_microbatch,
  first_microbatch,  // of its region, in the order of the schedule: what it makes holds for the others
  last_microbatch,
};

struct Op {
  const OpDef* def = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Phase phase = Phase::forward;
  int32_t block = -1;         // which repeated block of the model (layer) it belongs to; -1 outside
  int32_t stage = 0;          // which pipeline stage runs it; ops of the update run wherever their parameter is
  Lane lane = Lane::compute;  // set by overlap
  RunsFor runs_for = RunsFor::every_microbatch;  // set by quantize and overlap
  // Set by join_lanes: ops of the comm lane, by their number over all regions, whose latest run must have ended before
  // this op starts.
  std::vector<int32_t> waits = {};
  ValueId parameter = kNoValue;  // ops of the update: the parameter they work for
  std::string path;              // "layers.3.attn.qkv"
  std::source_location where;
};

std::string_view name_of(Phase phase);
std::string_view name_of(Lane lane);

}  // namespace sextant
