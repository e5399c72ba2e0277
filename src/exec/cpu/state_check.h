// StateCheck: takes and compares the checksums of a bound Program's states in host memory (exec/state_checksums.h).
// Nothing is compared until record_all has been called, by any Program of the arena.
#pragma once

#include <string>
#include <vector>

#include "base/threads.h"
#include "exec/addresses.h"
#include "exec/state_checksums.h"

namespace sextant {

uint64_t checksum_of(std::span<const std::byte> bytes);

class StateCheck {
 public:
  // All must outlive it.
  StateCheck(const Program& program, const Addresses& addresses, StateChecksums& checksums, ThreadTeam& team);

  bool has_checksums() const { return checksums_.any(); }
  void record_all();
  // Corruption at `place` where a value has changed.
  void verify_all(int rank, const std::string& place) const;

  // Op `op`, counted over all regions, is about to write, and has written.
  void verify_before(size_t op, int layer, int rank, const std::string& place) const {
    for (const State& state : before_[op]) verify(state, layer, rank, place);
  }
  void record_after(size_t op) {
    for (const State& state : after_[op])
      if (checksums_.at(state.sum)) checksums_.at(state.sum) = sum_of(state);
  }
  bool writes(size_t op) const { return !before_[op].empty() || !after_[op].empty(); }

 private:
  struct State {
    const Value* value;
    std::span<const std::byte> bytes;
    size_t sum;  // its place among the arena's
  };
  uint64_t sum_of(const State& state) const;
  void verify(const State& state, int layer, int rank, const std::string& place) const;

  StateChecksums& checksums_;
  ThreadTeam& team_;
  std::vector<State> states_;
  std::vector<std::vector<State>> before_, after_;  // by op
};

}  // namespace sextant
