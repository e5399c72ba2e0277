#include "targets/cpu/widening.h"

#include <algorithm>

#include "base/units.h"
#include "ir/alias.h"
#include "ir/signature.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kLine = 64;

// Whether the last input is the f32 of a weight in f16, which is the first.
bool has_master(const Op& op, const LocalTypes& in) {
  if (in.size() < 2 || in.front().dtype != DType::f16 || in.back().dtype != DType::f32) return false;
  Signature signature = parse_signature(op.def->operands);
  return signature.inputs.size() == in.size() && signature.inputs.back().name == "low";
}

LocalType wide(const LocalType& type) {
  return {type.dtype == DType::f16 ? DType::f32 : type.dtype, type.shape};
}

}  // namespace

Widening::Place Widening::new_place(const LocalType& type) {
  if (type.dtype != DType::f16) return {};
  int64_t at = bytes_;
  bytes_ += round_up(type.shape.count() * size_of(DType::f32), kLine);
  return {.at = at};
}

Widening::Widening(const Op& op, const LocalTypes& in, const LocalTypes& out) {
  auto narrow = [](const LocalType& type) { return type.dtype == DType::f16; };
  needed_ = std::ranges::any_of(in, narrow) || std::ranges::any_of(out, narrow);
  if (!needed_) return;
  bool master = has_master(op, in);
  for (size_t i = 0; i < in.size(); ++i)
    inputs_.push_back(master && i == 0 ? Place{.in_master = true} : new_place(in[i]));
  std::vector<Alias> aliases = aliases_of(op);
  for (size_t i = 0; i < out.size(); ++i) {
    auto over = std::ranges::find_if(aliases, [&](const Alias& alias) {
      return alias.rule == Alias::Rule::must && alias.output == static_cast<int>(i) &&
             inputs_[static_cast<size_t>(alias.input)].widened() && narrow(out[i]);
    });
    outputs_.push_back(over == aliases.end() ? new_place(out[i]) : inputs_[static_cast<size_t>(over->input)]);
  }
  for (const LocalType& type : in) wide_in.push_back(wide(type));
  for (const LocalType& type : out) wide_out.push_back(wide(type));
  if (!master) return;
  wide_in.pop_back();
  bool writes_master = std::ranges::any_of(aliases, [&](const Alias& alias) {
    return alias.input + 1 == static_cast<int>(in.size()) && alias.output + 1 == static_cast<int>(out.size());
  });
  if (writes_master) wide_out.pop_back();
}

}  // namespace sextant::cpu
