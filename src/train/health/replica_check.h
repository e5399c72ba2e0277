// Replicas that must hold the same bits, compared between steps: weights and optimizer states are the same on all ranks
// along every axis where their layout is not sharded. A device or memory that computes or keeps wrong bits shows here,
// and nowhere else: the run would go on with replicas that train different models.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/collectives.h"
#include "comm/host_group.h"
#include "exec/executor.h"

namespace sextant {

// Whether ranks that do the same work on the same values get the same bits. On a GPU they may not: each tunes its own
// GEMMs.
enum class SameWork : uint8_t { same_bits, may_round_differently };

class ReplicaCheck {
 public:
  // A check between steps reads as much as takes this share of the time since the last one, but no less than kSmallest;
  // the next one goes on where it ended. What it costs must not show, and replicas that differ once differ until it is
  // found.
  static constexpr double kShareOfTime = 0.0005;
  static constexpr int64_t kSmallest = 1 << 20;  // bytes

  // Without a transport there are no replicas. Values that SameWork lets differ (those invariant along an axis) are
  // compared along the other axes only. All must outlive this.
  ReplicaCheck(const StateView& values, Transport* transport, SameWork same_work);

  // Called by all ranks together, between steps. Corruption on one of the ranks when replicas differ, and RunEnded on
  // the others.
  void check_all();
  void check_part(HostGroup& group);

  int64_t replicated_bytes() const;  // on this rank

 private:
  using Clock = std::chrono::steady_clock;

  // Values that the same ranks hold alike.
  struct Replicas {
    std::vector<int> axes;
    Group group;
    std::vector<const Value*> values;
    int64_t bytes = 0;  // of all values, one behind the other
    int64_t next = 0;   // where the next check goes on
  };
  struct Piece {
    const Value* value;
    int64_t offset, bytes;
    uint64_t hash;
  };
  std::vector<Piece> pieces_of(const Replicas& replicas, int64_t first, int64_t count) const;
  void hash(std::vector<Piece>& pieces);
  void compare(const Replicas& replicas, const std::vector<Piece>& pieces);
  [[noreturn]] void report(const Replicas& replicas, const Value& value, const std::vector<uint64_t>& hashes);

  const StateView& values_;
  Transport* transport_;
  std::vector<Replicas> replicas_;
  Clock::time_point last_ = Clock::now();
  double bytes_per_s_ = 0;  // of the last check
  std::vector<std::byte> block_;
};

}  // namespace sextant
