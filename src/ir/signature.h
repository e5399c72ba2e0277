// The operand text of an OpDef, taken apart: names, letters and flags of inputs and outputs; and its layout rows
// expanded to one state per operand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "mesh/layout.h"

namespace sextant {

struct Operand {
  std::string name;
  std::string letters;  // one per dim, "*" = any dims
  enum class Count : uint8_t { one, optional, repeated } count = Count::one;
};

struct Signature {
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;

  // The operands that inputs of these ranks stand for, one for each. An optional operand is left out where the input
  // has another number of dims and a later operand has that number; repeated ones fill up.
  std::vector<const Operand*> operands_of(const std::vector<int>& input_ranks) const;
};

Signature parse_signature(std::string_view text);

// The operands of `def`. Each thread takes a text apart once: every op that a pass makes or looks at asks for it.
const Signature& signature_of(const OpDef& def);

template <class Types>
std::vector<int> ranks_of(const Types& types) {
  std::vector<int> ranks;
  for (const auto& type : types) ranks.push_back(type.shape.rank());
  return ranks;
}

// One way to run the op along one axis: a state for each input and output.
struct LayoutRow {
  std::vector<AxisState> inputs;
  std::vector<AxisState> outputs;
};

// The same row for operands that are split in this order. Rows name none but blocks: what is split together, is split
// alike.
LayoutRow in_order(LayoutRow row, ShardOrder order);

// The rows of `def` for operands of these ranks, the implied all-I and all-R rows last.
std::vector<LayoutRow> layout_rows(const OpDef& def, const std::vector<int>& input_ranks,
                                   const std::vector<int>& output_ranks);

}  // namespace sextant
