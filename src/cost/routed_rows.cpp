#include "cost/routed_rows.h"

#include <algorithm>
#include <cmath>

#include "ir/signature.h"

namespace sextant {

namespace {

constexpr std::string_view kRowLetters = "acn";  // of operands that are rows, as ops/dispatch.cpp names their dims

bool is_rows(const Operand& operand) {
  return operand.letters.starts_with(kRowLetters);
}

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {
    found_.held.resize(program.values.size());
    found_.tokens.resize(program.values.size());
  }

  RoutedRows run() {
    for_each_op([&](const Op& op) { mark_operands(op); });
    if (found_.per_token == 0) return {};
    // A change of layout has the rows on both sides, and may come after another one.
    for (bool more = true; more;) {
      more = false;
      for_each_op([&](const Op& op) { more = (op.def->layout_rule == LayoutRule::free && spread(op)) || more; });
    }
    return std::move(found_);
  }

 private:
  template <class Each>
  void for_each_op(Each each) const {
    for (const Region& region : program_.regions)
      for (const Op& op : region.ops) each(op);
  }

  void mark_operands(const Op& op) {
    if (op.def->operands.empty()) return;
    if (op.attrs.has("keep_groups"))
      found_.groups = op.attrs.real_or("groups", 1), found_.keep_groups = op.attrs.real("keep_groups");
    const Signature& signature = signature_of(*op.def);
    bool any = std::ranges::any_of(signature.inputs, is_rows) || std::ranges::any_of(signature.outputs, is_rows);
    if (!any) return;
    if (op.attrs.has("filled")) found_.filled = op.attrs.real("filled");
    if (op.attrs.has("top_k")) found_.per_token = op.attrs.real("top_k");
    bool moves = op.attrs.has("top_k") || op.attrs.has("capacity");
    auto mark_all = [&](const std::vector<ValueId>& ids, const std::vector<Operand>& operands) {
      for (size_t i = 0; i < std::min(ids.size(), operands.size()); ++i) {
        if (is_rows(operands[i])) mark(ids[i]);
        if (!is_rows(operands[i]) && moves) found_.tokens[static_cast<size_t>(ids[i])] = true;
      }
    };
    mark_all(op.inputs, signature.inputs);
    mark_all(op.outputs, signature.outputs);
  }

  void mark(ValueId id) { found_.held[static_cast<size_t>(id)] = true; }

  bool spread(const Op& op) {
    auto held = [&](ValueId id) { return found_.in(id); };
    bool all = std::ranges::all_of(op.inputs, held) && std::ranges::all_of(op.outputs, held);
    if (all || (std::ranges::none_of(op.inputs, held) && std::ranges::none_of(op.outputs, held))) return false;
    for (ValueId id : op.inputs) mark(id);
    for (ValueId id : op.outputs) mark(id);
    return true;
  }

  const Program& program_;
  RoutedRows found_;
};

}  // namespace

RoutedRows routed_rows(const Program& program) {
  return Finder(program).run();
}

double one_copy_for_each(double bytes, const RoutedRows& rows, double places) {
  double open = std::max(1.0, places * rows.keep_groups / rows.groups);
  double reached = open * (1 - std::pow(1 - 1 / open, rows.per_token));
  return bytes * std::min(1.0, reached / rows.per_token);
}

}  // namespace sextant
