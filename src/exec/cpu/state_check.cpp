#include "exec/cpu/state_check.h"

#include <atomic>
#include <cstring>

#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math_word_sums.h"

namespace sextant {

namespace {

constexpr int64_t kBytesPerTask = int64_t{1} << 18;  // whole words

}  // namespace

uint64_t checksum_of(std::span<const std::byte> bytes) {
  size_t whole = bytes.size() / sizeof(uint32_t);
  uint32_t last = 0;
  if (size_t rest = bytes.size() % sizeof last; rest > 0) std::memcpy(&last, bytes.data() + whole * sizeof last, rest);
  return cpu::word_sum(bytes.data(), static_cast<int64_t>(whole)) + last;
}

StateCheck::StateCheck(const Program& program, const Addresses& addresses, StateChecksums& checksums, ThreadTeam& team)
    : checksums_(checksums), team_(team) {
  StateWrites writes(program);
  std::vector<size_t> place(program.values.size());
  for (ValueId id : writes.checked()) {
    const Value& value = program[id];
    auto bytes = static_cast<size_t>(value.local_bytes().n);
    const Buffer& buffer = program.buffers[static_cast<size_t>(value.buffer)];
    place[static_cast<size_t>(id)] = states_.size();
    states_.push_back(
        {&value, {addresses.place(value, bytes, 0, 0), bytes}, checksums.place_of(buffer.space, buffer.offset)});
  }
  auto states_of = [&](std::span<const ValueId> ids) {
    std::vector<State> states;
    for (ValueId id : ids) states.push_back(states_[place[static_cast<size_t>(id)]]);
    return states;
  };
  size_t number = 0;
  for (const Region& region : program.regions)
    for (size_t i = 0; i < region.ops.size(); ++i, ++number) {
      before_.push_back(states_of(writes.first_written(number)));
      after_.push_back(states_of(writes.last_written(number)));
    }
}

void StateCheck::record_all() {
  for (const State& state : states_) checksums_.at(state.sum) = sum_of(state);
}

void StateCheck::verify_all(int rank, const std::string& place) const {
  for (const State& state : states_) verify(state, -1, rank, place);
}

uint64_t StateCheck::sum_of(const State& state) const {
  std::atomic<uint64_t> sum{0};
  cpu::for_blocks(team_, static_cast<int64_t>(state.bytes.size()), kBytesPerTask, [&](int64_t begin, int64_t end) {
    uint64_t part = checksum_of(state.bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    sum.fetch_add(part, std::memory_order_relaxed);
  });
  return sum;
}

void StateCheck::verify(const State& state, int layer, int rank, const std::string& place) const {
  const std::optional<uint64_t>& recorded = checksums_.at(state.sum);
  if (!recorded) return;
  uint64_t found = sum_of(state);
  if (found != *recorded)
    end_by_changed_state({.value = *state.value, .recorded = *recorded, .found = found, .rank = rank, .layer = layer},
                         place);
}

}  // namespace sextant
