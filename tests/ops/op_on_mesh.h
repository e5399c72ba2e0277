// One op on a small mesh of one axis, by the passes and the executor that training uses, beside the same op on one
// rank. Enters: a definition, an example, a layout row and how many ranks. Leaves: what differs, in words; nothing when
// the row holds forward and backward.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/signature.h"
#include "ops/ops.h"

namespace sextant {

struct RowCase {
  const OpDef& def;
  const Example& example;
  LayoutRow row;
  int ranks = 2;

  std::string text() const;  // "linear / plain on 2 ranks: S(0) R -> S(0)"
};

std::string row_text(const LayoutRow& row);

// The parts of an operand's dim that are each split alike: q|k|v in packed attention rows, gate|up in those of swiglu.
Segments packed_segments(const Operand& operand, const TensorType& type, const Attrs& attrs);

enum class Direction : uint8_t {
  forward,
  backward,  // forward too, and the gradients of all real inputs for a random gradient of output 0
};

// Whole tensors by path ("out0", "grad.in1"), put together from what the ranks hold as the layouts say: shards are
// joined, partial values added up, and copies held to be the same bits. Where they are not, a line in `complaints` says
// so.
struct WholeResults {
  std::map<std::string, std::vector<double>> tensors;
  std::vector<std::string> complaints;
};

WholeResults run_on_mesh(const RowCase& row_case, Direction direction);

// Where the results on the mesh are not those of one rank, up to rounding in double.
std::vector<std::string> differences(const RowCase& row_case);

}  // namespace sextant
