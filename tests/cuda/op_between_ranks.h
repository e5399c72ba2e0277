// One op that talks to other ranks, run on the device by ranks as threads, beside the CPU's kernel for it. Enters: a
// Program of one op, the number of ranks, and how they talk. Leaves: what every rank got on either, and how many bytes
// it sent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/cuda/runtime/wires.h"
#include "ir/graph.h"
#include "ir/program.h"

namespace sextant {

using Words = std::vector<std::byte>;

int device_count();  // 0 without a driver

// Every value's local shape set; the graph's ops as one region.
Program program_of(Graph graph);

enum class Terms : uint8_t {
  normal,  // sums depend on their order
  small,   // whole numbers that add up exactly in any order
};

struct RankResult {
  std::vector<Words> cpu, device;  // the outputs
  std::map<std::string, int64_t> cpu_sent, device_sent;
  bool captured = false;  // the prepared kernel says that it can be
};

// The placement of an output that may be written over an input.
enum class Outputs : uint8_t { over_inputs, apart };

struct Setting {
  int ranks = 2;
  WireKind wires = WireKind::host_staging;
  Terms terms = Terms::normal;
  Outputs outputs = Outputs::over_inputs;
};

// Op 0 of the Program. Outputs with memory of their own hold other bytes before.
std::vector<RankResult> run_between_ranks(const Program& program, const Setting& setting);

}  // namespace sextant
