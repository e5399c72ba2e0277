// Snapshot: what a checkpoint holds of a rank's values, as it was at one moment, so that training goes on while it is
// written.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.h"

namespace sextant {

// Whether checkpoints hold it: weights, and states of the optimizer.
bool is_checkpointed(const Value& value);

class Snapshot final : public StateView {
 public:
  explicit Snapshot(const StateView& source);  // allocates; the source must outlive it

  void take();  // copies every weight and every optimizer state; Corruption where the source has changed in memory

  const Program& program() const override { return source_.program(); }
  int rank() const override { return source_.rank(); }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override;

  int64_t bytes() const { return static_cast<int64_t>(copy_.size()); }

 private:
  const StateView& source_;
  std::vector<int64_t> place_;  // by value: where its bytes begin in the copy, or -1
  std::vector<std::byte> copy_;
};

// The memory that a snapshot of a Program takes.
int64_t snapshot_bytes(const Program& program);

}  // namespace sextant
