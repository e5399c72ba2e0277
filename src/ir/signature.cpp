#include "ir/signature.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"

namespace sextant {

namespace {

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Operand parse_operand(std::string_view text) {
  Operand operand;
  size_t bracket = text.find('[');
  BUG_IF(bracket == std::string_view::npos || !text.ends_with(']'), "operand '{}' has no dims", text);
  std::string_view name = text.substr(0, bracket);
  if (name.ends_with('?')) {
    operand.count = Operand::Count::optional;
    name.remove_suffix(1);
  } else if (name.ends_with("...")) {
    operand.count = Operand::Count::repeated;
    name.remove_suffix(3);
  }
  operand.name = name;
  for (char c : text.substr(bracket + 1, text.size() - bracket - 2))
    if (c != ' ') operand.letters += c;
  return operand;
}

std::vector<Operand> parse_operands(std::string_view text) {
  std::vector<Operand> operands;
  while (!trim(text).empty()) {
    size_t end = std::min(text.find(','), text.size());
    operands.push_back(parse_operand(trim(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return operands;
}

// The dim of `operand` that bears `letter`, or -1.
int dim_of(const Operand& operand, char letter) {
  size_t at = operand.letters.find(letter);
  return at == std::string::npos ? -1 : static_cast<int>(at);
}

AxisState state_in_row(std::string_view state, const Operand& operand, const OpDef& def) {
  if (state == "R") return kReplicated;
  if (state == "I") return kInvariant;
  if (state == "P") return kPartial;
  if (state == "P(max)") return kPartialMax;
  BUG_IF(state.size() != 4 || (!state.starts_with("S(") && !state.starts_with("B(")), "{}: bad state '{}'", def.name,
         state);
  int dim = dim_of(operand, state[2]);
  BUG_IF(dim < 0, "{}: {} has no dim '{}'", def.name, operand.name, state[2]);
  return state[0] == 'B' ? blocks(dim) : sharded(dim);
}

// The operands that an op has, and those that its definition declares.
struct RowOperands {
  std::vector<const Operand*> inputs, outputs;
  const Signature& declared;
};

// "x:S(i) w:S(i) bias:P -> y:P"; an operand that is not named is R.
LayoutRow written_row(const OpDef& def, const RowOperands& operands, std::string_view text) {
  LayoutRow row{std::vector<AxisState>(operands.inputs.size(), kReplicated),
                std::vector<AxisState>(operands.outputs.size(), kReplicated)};
  auto fill = [&](std::string_view part, const std::vector<const Operand*>& of, const std::vector<Operand>& declared,
                  std::vector<AxisState>& states) {
    while (!trim(part).empty()) {
      part = trim(part);
      std::string_view word = part.substr(0, part.find(' '));
      part.remove_prefix(word.size());
      size_t colon = word.find(':');
      bool known = false;
      for (size_t i = 0; i < states.size(); ++i) {
        const Operand& operand = *of[i];
        if (operand.name != word.substr(0, colon)) continue;
        states[i] = state_in_row(word.substr(colon + 1), operand, def);
        known = true;
      }
      // Optional operands that this op leaves out may still be named.
      for (const Operand& operand : declared) known = known || operand.name == word.substr(0, colon);
      BUG_IF(!known, "{}: row '{}' names no operand '{}'", def.name, text, word.substr(0, colon));
    }
  };
  size_t arrow = text.find("->");
  fill(text.substr(0, arrow), operands.inputs, operands.declared.inputs, row.inputs);
  fill(text.substr(arrow + 2), operands.outputs, operands.declared.outputs, row.outputs);
  return row;
}

LayoutRow split_row(const OpDef& def, const RowOperands& operands, char letter) {
  LayoutRow row;
  for (const Operand* operand : operands.inputs) {
    int dim = dim_of(*operand, letter);
    row.inputs.push_back(dim < 0 ? kReplicated : sharded(dim));
  }
  for (const Operand* operand : operands.outputs) {
    int dim = dim_of(*operand, letter);
    row.outputs.push_back(dim < 0 ? def.without_letter : sharded(dim));
  }
  return row;
}

// Split dim `dim` of every operand that is all `*`; the others are replicated.
LayoutRow any_dim_row(const OpDef& def, const RowOperands& operands, int dim) {
  LayoutRow row;
  for (const Operand* operand : operands.inputs)
    row.inputs.push_back(operand->letters == "*" ? sharded(dim) : kReplicated);
  for (const Operand* operand : operands.outputs)
    row.outputs.push_back(operand->letters == "*" ? sharded(dim) : def.without_letter);
  return row;
}

// Whether the operand has so many dims.
bool fits_rank(const Operand& operand, int rank) {
  return operand.letters == "*" || static_cast<int>(operand.letters.size()) == rank;
}

}  // namespace

std::vector<const Operand*> Signature::operands_of(const std::vector<int>& input_ranks) const {
  std::vector<const Operand*> found;
  size_t next = 0;
  for (int rank : input_ranks) {
    while (next < inputs.size() && inputs[next].count == Operand::Count::optional && !fits_rank(inputs[next], rank))
      ++next;
    if (next < inputs.size()) {
      found.push_back(&inputs[next]);
      if (inputs[next].count != Operand::Count::repeated) ++next;
    } else {
      // Past the end stands the accumulated gradient that autodiff appended, which is like output 0.
      found.push_back(&outputs.front());
    }
  }
  return found;
}

Signature parse_signature(std::string_view text) {
  size_t arrow = text.find("->");
  BUG_IF(arrow == std::string_view::npos, "signature '{}' has no arrow", text);
  return {parse_operands(text.substr(0, arrow)), parse_operands(text.substr(arrow + 2))};
}

const Signature& signature_of(const OpDef& def) {
  // By text, not by address: a definition that a test makes may lie where another one was.
  thread_local std::map<std::string, Signature, std::less<>> known;
  auto found = known.find(def.operands);
  if (found == known.end()) found = known.emplace(def.operands, parse_signature(def.operands)).first;
  return found->second;
}

LayoutRow in_order(LayoutRow row, ShardOrder order) {
  for (auto* states : {&row.inputs, &row.outputs})
    for (AxisState& state : *states)
      if (state.kind == StateKind::sharded && state.order != ShardOrder::blocks) state.order = order;
  return row;
}

std::vector<LayoutRow> layout_rows(const OpDef& def, const std::vector<int>& input_ranks,
                                   const std::vector<int>& output_ranks) {
  const Signature& signature = signature_of(def);
  RowOperands operands{signature.operands_of(input_ranks), {}, signature};
  for (size_t i = 0; i < output_ranks.size(); ++i) operands.outputs.push_back(&signature.outputs[i]);
  std::vector<LayoutRow> rows;
  for (std::string_view text : def.rows) {
    if (text.find("->") != std::string_view::npos) {
      rows.push_back(written_row(def, operands, text));
    } else if (text == "*") {
      int rank = 0;
      for (size_t i = 0; i < operands.inputs.size(); ++i)
        if (operands.inputs[i]->letters == "*") rank = input_ranks[i];
      for (int dim = 0; dim < rank; ++dim) rows.push_back(any_dim_row(def, operands, dim));
    } else {
      BUG_IF(text.size() != 1, "{}: row '{}' is neither a letter nor written out", def.name, text);
      rows.push_back(split_row(def, operands, text[0]));
    }
  }
  for (AxisState same : {kInvariant, kReplicated})
    rows.push_back(
        {std::vector<AxisState>(input_ranks.size(), same), std::vector<AxisState>(output_ranks.size(), same)});
  return rows;
}

}  // namespace sextant
