// Plan: the choices that turn a Graph into a Program. Passes read their slice of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/graph.h"

namespace sextant {

enum class RecomputeMode : uint8_t {
  none,       // save everything backward reads
  selective,  // compute cheap ops (norms, activations) again
  full,       // save only what enters each block
};

struct Plan {
  RecomputeMode recompute = RecomputeMode::none;
  int zero = 0;          // ZeRO stage over the data axes
  int microbatches = 1;  // per step and rank
};

struct LocalType {
  DType dtype;
  LocalShape shape;
};
using LocalTypes = std::vector<LocalType>;

// What the passes must know of the machine that will run the Program.
struct Target {
  std::string name;  // "cpu"
  int threads = 1;
  int64_t alignment = 64;  // of every buffer, in bytes
  // Scratch of one op's kernel, from the local types of its operands.
  std::function<Bytes(const Op&, const LocalTypes& in, const LocalTypes& out)> workspace;
};

}  // namespace sextant
