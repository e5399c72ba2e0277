#include "passes/gradient_history.h"

#include <algorithm>

#include "ir/alias.h"

namespace sextant {

GradientHistory::GradientHistory(const Program& program) : program_(program) {
  for (size_t r = 0; r < program.regions.size(); ++r) {
    const Region& region = program.regions[r];
    for (size_t i = 0; i < region.ops.size(); ++i) {
      for (ValueId id : region.ops[i].outputs) made_[id] = {static_cast<int>(r), static_cast<int>(i)};
      for (ValueId id : region.ops[i].inputs) read_[{id, static_cast<int>(r)}] = static_cast<int>(i);
      for (const Alias& alias : aliases_of(region.ops[i]))
        if (alias.rule == Alias::Rule::must)
          previous_[region.ops[i].outputs[static_cast<size_t>(alias.output)]] =
              region.ops[i].inputs[static_cast<size_t>(alias.input)];
    }
  }
}

OpPosition GradientHistory::made(ValueId id) const {
  auto at = made_.find(id);
  return at == made_.end() ? OpPosition{} : at->second;
}

OpPosition GradientHistory::finished(ValueId gradient) const {
  auto last = made_.find(gradient);
  if (last == made_.end()) return {};
  OpPosition place = last->second;
  RegionKind kind = program_.regions[static_cast<size_t>(place.region)].kind;
  if (kind != RegionKind::backward && kind != RegionKind::weight) return {};
  for (ValueId id = gradient;;) {
    auto before = previous_.find(id);
    if (before == previous_.end()) break;
    id = before->second;
    auto made = made_.find(id);
    if (made != made_.end() && made->second.region != place.region) return {};
  }
  if (auto read = read_in_region(gradient, place.region)) place.op = std::max(place.op, *read);
  return is_step_sum(program_[first_version(gradient)].kind) ? place : OpPosition{};
}

std::optional<int> GradientHistory::read_in_region(ValueId id, int region) const {
  auto at = read_.find({id, region});
  return at == read_.end() ? std::nullopt : std::optional(at->second);
}

ValueId GradientHistory::first_version(ValueId id) const {
  for (auto at = previous_.find(id); at != previous_.end(); at = previous_.find(id)) id = at->second;
  return id;
}

}  // namespace sextant
