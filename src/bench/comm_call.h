// CommCall: one collective over one group, with its buffers. Data are whole numbers that every rank can compute, so that the
// result is known to the bit whatever the order of adding.
#pragma once

#include <vector>

#include "bench/comm_rules.h"
#include "comm/collectives.h"

namespace sextant {

enum class CommPlace : uint8_t { in, out };  // whether the result overwrites what was given

// What the communicator can do: an all-reduce out of place is a copy first, as it is in training; a reduce-scatter and an
// all-to-all are never in place, a broadcast and a message always are.
bool can_be(CommOp op, CommPlace place);

class CommCall {
 public:
  // About `bytes`: elements are divided evenly over the ranks, one at least for each.
  CommCall(CommOp op, CommPlace place, int64_t bytes, const Group& group);

  double bytes() const { return static_cast<double>(count_) * sizeof(float); }  // as nccl-tests counts them
  void fill();                  // before every call: an in-place call has overwritten its input
  void run(Channel& channel);   // what is timed
  int64_t wrong() const;        // elements of the result that are not what they must be

 private:
  std::span<std::byte> bytes_of(std::vector<float>& data, int64_t first, int64_t count) const;

  CommOp op_;
  CommPlace place_;
  Group group_;
  int64_t count_, part_;  // elements in all, and of one rank
  std::vector<float> given_, result_, scratch_;
};

}  // namespace sextant
