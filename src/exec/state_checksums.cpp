#include "exec/state_checksums.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/corruption.h"

namespace sextant {

bool is_checked_state(const Value& value) {
  bool kept = value.kind == ValueKind::parameter || value.kind == ValueKind::low_bits || value.kind == ValueKind::state;
  return kept && value.buffer >= 0 && value.space != MemorySpace::nvme && value.local_bytes().n > 0;
}

size_t StateChecksums::place_of(MemorySpace space, int64_t offset) {
  auto at = std::ranges::find_if(entries_,
                                 [&](const Entry& entry) { return entry.space == space && entry.offset == offset; });
  if (at == entries_.end()) at = entries_.insert(at, {space, offset, {}});
  return static_cast<size_t>(at - entries_.begin());
}

bool StateChecksums::any() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.sum.has_value(); });
}

StateWrites::StateWrites(const Program& program) {
  std::map<int32_t, ValueId> by_buffer;
  for (const Value& value : program.values)
    if (is_checked_state(value) && by_buffer.emplace(value.buffer, value.id).second) checked_.push_back(value.id);
  for (const Region& region : program.regions) {
    struct Writers {
      size_t first, last;
    };
    std::map<ValueId, Writers> writers;
    for (const Op& op : region.ops) {
      size_t number = first_.size();
      first_.emplace_back();
      last_.emplace_back();
      for (ValueId output : op.outputs)
        if (auto at = by_buffer.find(program[output].buffer); at != by_buffer.end())
          writers.try_emplace(at->second, Writers{number, number}).first->second.last = number;
    }
    for (const auto& [value, ops] : writers) {
      first_[ops.first].push_back(value);
      last_[ops.last].push_back(value);
    }
  }
}

namespace {

std::string change_text(uint64_t recorded, uint64_t found) {
  uint64_t more = found - recorded, less = recorded - found;
  for (auto [difference, was] : {std::pair(more, 0), std::pair(less, 1)})
    if (std::has_single_bit(difference) && std::countr_zero(difference) < 32)
      return fmt::format("as if bit {} of a 32-bit word, which was {}, had been flipped", std::countr_zero(difference),
                         was);
  return fmt::format("the checksum of its words is {:#x} and was {:#x}", found, recorded);
}

}  // namespace

void end_by_changed_state(const ChangedState& changed, const std::string& place) {
  throw Corruption(
      {.check = "memory", .rank = changed.rank, .op = changed.value.path, .layer = changed.layer}, place,
      fmt::format("{} ({}) on rank {} changed in memory after it was last written: {}", changed.value.path,
                  name_of(changed.value.kind), changed.rank, change_text(changed.recorded, changed.found)));
}

}  // namespace sextant
