#include "train/faults/layer_fault.h"

#include <algorithm>
#include <map>

#include "base/f16.h"
#include "ckpt/weight_halves.h"
#include "ir/op_def.h"

namespace sextant {

namespace {

using OpsByOutput = std::map<ValueId, const Op*>;

OpsByOutput made_by_ops(const Program& program) {
  OpsByOutput made;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (ValueId id : op.outputs) made.try_emplace(id, &op);
  return made;
}

// Its weights: parameters that it reads, or what one rank after the other gathers of them.
std::vector<ValueId> weights_read_by(const Program& program, const OpsByOutput& made, const Op& op) {
  std::vector<ValueId> weights;
  for (ValueId id : op.inputs) {
    for (auto by = made.find(id);
         program[id].kind == ValueKind::activation && by != made.end() && by->second->inputs.size() == 1;
         by = made.find(id))
      id = by->second->inputs[0];
    if (program[id].kind == ValueKind::parameter) weights.push_back(id);
  }
  return weights;
}

template <class Visit>
void for_each_forward_op(const Program& program, int64_t layer, const Visit& visit) {
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (op.phase == Phase::forward && op.block == layer) visit(op);
}

}  // namespace

bool holds_layer(const Program& program, int64_t layer) {
  bool holds = false;
  for_each_forward_op(program, layer, [&](const Op&) { holds = true; });
  return holds;
}

std::vector<ValueId> output_weights(const Program& program, int64_t layer) {
  OpsByOutput made = made_by_ops(program);
  std::vector<ValueId> last;
  for_each_forward_op(program, layer, [&](const Op& op) {
    for (ValueId id : weights_read_by(program, made, op))
      if (program[id].shape.rank() == 2) last = {id};
  });
  return last;
}

std::vector<ValueId> logit_weights(const Program& program, int64_t layer) {
  OpsByOutput made = made_by_ops(program);
  std::vector<ValueId> found;
  for_each_forward_op(program, layer, [&](const Op& op) {
    if (!op.def->attends) return;
    ValueId id = op.inputs[0];
    for (auto by = made.find(id); found.empty() && by != made.end(); by = made.find(id)) {
      found = weights_read_by(program, made, *by->second);
      id = by->second->inputs[0];
    }
  });
  return found;
}

bool can_scale(const Program& program, const std::vector<ValueId>& weights) {
  return std::ranges::all_of(
      weights, [&](ValueId id) { return program[id].dtype == DType::f32 || program[id].dtype == DType::f16; });
}

void scale_weights(Bound& bound, const std::vector<ValueId>& weights, float factor) {
  for (ValueId id : weights)
    for (const Value* part : parts_of_weight(bound.program(), bound.program()[id])) {
      auto count = static_cast<size_t>(part->local.count());
      std::vector<float> elements(count);
      if (part->dtype == DType::f32) {
        bound.read(*part, std::as_writable_bytes(std::span(elements)));
      } else {
        std::vector<uint16_t> halves(count);
        bound.read(*part, std::as_writable_bytes(std::span(halves)));
        std::ranges::transform(halves, elements.begin(), f16_value);
      }
      for (float& element : elements) element *= factor;
      write_weight(bound, *part, elements);
    }
}

}  // namespace sextant
