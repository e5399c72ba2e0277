#include "targets/cpu/widening.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "ir/alias.h"
#include "ir/signature.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kLine = 64;

bool is_narrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

// Of each operand of one side that is there, the operand that has the rest of its f32; kNone: it has none. `low`
// belongs to the first, `low_NAME` to NAME, or to the first where nothing has that name (low_next: p_next).
std::vector<int> rests_of(std::span<const Operand> operands, size_t count) {
  std::vector<int> rests(count, Widening::kNone);
  for (size_t i = 1; i < std::min(count, operands.size()); ++i) {
    std::string_view name = operands[i].name;
    if (name != "low" && !name.starts_with("low_")) continue;
    name.remove_prefix(std::min(name.size(), std::string_view("low_").size()));
    auto owner = std::ranges::find(operands, name, &Operand::name);
    rests[owner == operands.end() ? 0 : static_cast<size_t>(owner - operands.begin())] = static_cast<int>(i);
  }
  return rests;
}

// Types of the kernel's operands on one side: operands with a place are in f32, operands that are part of another are
// left out.
LocalTypes wide_types(const LocalTypes& types, const std::vector<Widening::Place>& places) {
  std::vector<bool> is_part(types.size());
  for (const Widening::Place& place : places)
    for (int part : {place.master, place.low})
      if (part != Widening::kNone) is_part[static_cast<size_t>(part)] = true;
  LocalTypes wide;
  for (size_t i = 0; i < types.size(); ++i)
    if (!is_part[i]) wide.push_back({places[i].widened() ? DType::f32 : types[i].dtype, types[i].shape});
  return wide;
}

}  // namespace

Widening::Place Widening::new_place(const LocalType& type) {
  int64_t at = bytes_;
  bytes_ += round_up(type.shape.count() * size_of(DType::f32), kLine);
  return {.at = at};
}

Widening::Widening(const Op& op, const LocalTypes& in, const LocalTypes& out, uint32_t bf16_inputs) {
  std::vector<Alias> aliases = aliases_of(op);
  auto over = [&](size_t output) {  // the input that it is written over
    auto alias = std::ranges::find_if(
        aliases, [&](const Alias& a) { return a.rule == Alias::Rule::must && a.output == static_cast<int>(output); });
    return alias == aliases.end() ? kNone : alias->input;
  };
  auto widens_input = [&](size_t i) {
    return is_narrow(in[i].dtype) && (in[i].dtype != DType::bf16 || (bf16_inputs >> i & 1) == 0);
  };
  auto widens_output = [&](size_t i) {
    int input = over(i);
    return is_narrow(out[i].dtype) && (input == kNone || widens_input(static_cast<size_t>(input)));
  };
  for (size_t i = 0; i < in.size(); ++i) needed_ = needed_ || widens_input(i);
  for (size_t i = 0; i < out.size(); ++i) needed_ = needed_ || widens_output(i);
  if (!needed_) return;

  const Signature& signature = signature_of(*op.def);
  const std::vector<int> in_rests = rests_of(signature.inputs, in.size());
  const std::vector<int> out_rests = rests_of(signature.outputs, out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!widens_input(i)) {
      inputs_.emplace_back();
    } else if (in[i].dtype == DType::f16 && in_rests[i] != kNone) {
      inputs_.push_back({.master = in_rests[i]});
    } else {
      inputs_.push_back(new_place(in[i]));
      inputs_.back().low = in_rests[i];
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (!widens_output(i)) {
      outputs_.emplace_back();
      continue;
    }
    int input = over(i);
    Place place = input == kNone ? new_place(out[i]) : inputs_[static_cast<size_t>(input)];
    if (place.master != kNone) {
      place.master = out_rests[i];
      BUG_IF(place.master == kNone, "{}: output {} is written over an f16 weight without its f32", op.def->name, i);
    }
    place.low = out[i].dtype == DType::bf16 ? out_rests[i] : kNone;
    outputs_.push_back(place);
  }
  wide_in = wide_types(in, inputs_);
  wide_out = wide_types(out, outputs_);
}

}  // namespace sextant::cpu
