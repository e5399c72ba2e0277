#include "passes/sort_slots.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "ir/signature.h"
#include "ops/ops.h"

namespace sextant {

namespace {

// Which operands of an op are of slots, and where the order of slots goes among its inputs.
struct SlotOperands {
  std::vector<size_t> inputs, outputs;
  size_t order = 0;
  bool takes_offsets = false;
  std::optional<size_t> experts;
};

std::optional<SlotOperands> slot_operands(const OpDef& def) {
  constexpr char kSlotDim = 'n';
  const Signature& signature = signature_of(def);
  SlotOperands found;
  bool takes_order = false;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const Operand& operand = signature.inputs[i];
    if (operand.letters.find(kSlotDim) != std::string::npos) found.inputs.push_back(i);
    if (operand.name == "experts") found.experts = i;
    if (operand.name == "order" && operand.count == Operand::Count::optional) found.order = i, takes_order = true;
    if (operand.name == "offsets") found.takes_offsets = true;
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    if (signature.outputs[i].letters.find(kSlotDim) != std::string::npos) found.outputs.push_back(i);
  if (!takes_order) return std::nullopt;
  return found;
}

// The values of slots that must stand in one order, and whether they may in that of their experts.
class SlotGroups {
 public:
  explicit SlotGroups(const Program& program) : parents_(program.values.size()), groups_(program.values.size()) {
    std::iota(parents_.begin(), parents_.end(), 0);
    for (const OpDef* def : all_ops())
      if (std::optional<SlotOperands> operands = slot_operands(*def)) operands_[def] = *operands;
    for_ops(program, [&](const Op& op) { join(op); });
    for_ops(program, [&](const Op& op) { check(program, op); });
  }

  const SlotOperands* operands_of(const Op& op) const {
    auto found = operands_.find(op.def);
    return found == operands_.end() ? nullptr : &found->second;
  }

  struct Group {
    ValueId experts = kNoValue;
    int64_t expert_count = 0;
    bool sortable = true;
  };
  size_t root_of(const Op& op) const { return root(first_slot_value(op)); }
  const Group& group(size_t root) const { return groups_[root]; }
  bool sorts(const Op& op) const {
    if (!operands_of(op)) return false;
    const Group& of = group(root_of(op));
    return of.sortable && of.experts != kNoValue;
  }

 private:
  template <class Visit>
  static void for_ops(const Program& program, const Visit& visit) {
    for (const Region& region : program.regions)
      for (const Op& op : region.ops) visit(op);
  }

  size_t root(ValueId id) const {
    auto at = static_cast<size_t>(id);
    while (parents_[at] != at) at = parents_[at];
    return at;
  }

  ValueId first_slot_value(const Op& op) const {
    const SlotOperands& operands = operands_.at(op.def);
    return operands.inputs.empty() ? op.outputs[operands.outputs[0]] : op.inputs[operands.inputs[0]];
  }

  void join(const Op& op) {
    const SlotOperands* operands = operands_of(op);
    if (!operands) return;
    size_t to = root(first_slot_value(op));
    for (size_t i : operands->inputs) parents_[root(op.inputs[i])] = to;
    for (size_t i : operands->outputs) parents_[root(op.outputs[i])] = to;
  }

  // Whoever else touches a value of slots wants it as it is: another op, another operand, or what is outside of the
  // Program.
  void check(const Program& program, const Op& op) {
    const SlotOperands* operands = operands_of(op);
    auto touch = [&](ValueId id, bool knows_slots) {
      Group& of = groups_[root(id)];
      if (!knows_slots || program[id].kind != ValueKind::activation) of.sortable = false;
    };
    auto is_in = [](const std::vector<size_t>& places, size_t i) {
      return std::find(places.begin(), places.end(), i) != places.end();
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) touch(op.inputs[i], operands && is_in(operands->inputs, i));
    for (size_t i = 0; i < op.outputs.size(); ++i) touch(op.outputs[i], operands && is_in(operands->outputs, i));
    if (!operands || !operands->experts) return;
    Group& of = groups_[root_of(op)];
    const ValueId experts = op.inputs[*operands->experts];
    if (of.experts != kNoValue && of.experts != experts) of.sortable = false;
    of.experts = experts;
    of.expert_count = op.attrs.integer("experts");
  }

  std::vector<size_t> parents_;
  std::vector<Group> groups_;  // by root
  std::map<const OpDef*, SlotOperands> operands_;
};

// The op that sorts a group's slots, in front of the first op of a region that needs them so.
Op order_op(Program& program, const SlotGroups::Group& group, const Op& before, const Region& region) {
  const Value& experts = program[group.experts];
  Op made{.def = &ops::slot_order,
          .inputs = {group.experts},
          .phase = before.phase,
          .block = before.block,
          .stage = before.stage,
          .path = experts.path + ".order",
          .where = before.where};
  made.attrs.set("experts", group.expert_count);
  const TensorTypes types = infer_types(ops::slot_order, made.attrs, std::vector{type_of(experts)});
  // The order lies as the choice of experts does; offsets are a rank's own.
  const Layout layouts[] = {experts.layout, Layout{}};
  for (size_t i = 0; i < types.size(); ++i) {
    Value value{
        .id = static_cast<ValueId>(program.values.size()),
        .path = fmt::format("{}.{}{}{}", made.path, name_of(region.kind), region.chunk, i == 0 ? "" : ".offsets"),
        .dtype = types[i].dtype,
        .shape = types[i].shape,
        .layout = layouts[i]};
    value.local = local_shape(value.shape, value.layout, program.mesh);
    made.outputs.push_back(value.id);
    program.values.push_back(std::move(value));
  }
  return made;
}

}  // namespace

void sort_slots(Program& program) {
  const SlotGroups groups(program);
  for (Region& region : program.regions) {
    std::map<size_t, std::vector<ValueId>> orders;  // by group
    std::vector<Op> ops;
    for (Op& op : region.ops) {
      if (groups.sorts(op)) {
        const size_t root = groups.root_of(op);
        if (!orders.contains(root)) {
          ops.push_back(order_op(program, groups.group(root), op, region));
          orders[root] = ops.back().outputs;
        }
        const SlotOperands& operands = *groups.operands_of(op);
        const std::vector<ValueId>& order = orders[root];
        op.inputs.insert(op.inputs.begin() + static_cast<std::ptrdiff_t>(operands.order), order.begin(),
                         operands.takes_offsets ? order.end() : order.begin() + 1);
        op.attrs.set("in_order", int64_t{1});
      }
      ops.push_back(std::move(op));
    }
    region.ops = std::move(ops);
  }
}

}  // namespace sextant
