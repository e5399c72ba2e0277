// CommCall: one collective over one group, with its buffers. Data are whole numbers that every rank can compute, so
// that the result is known to the bit whatever the order of adding. make_host_call goes through messages of a
// transport, as ranks on processors do; comm_device_call.h through an executor.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/comm/comm_rules.h"
#include "comm/collectives.h"

namespace sextant {

enum class CommPlace : uint8_t { in, out };  // whether the result overwrites what was given

// Whether a collective can run in this place. An all-reduce out of place is a copy first, as in training. A
// reduce-scatter and an all-to-all are never in place, a broadcast always is. A ring does not overwrite the data that
// it sends.
bool can_be(Collective op, CommPlace place);

class CommCall {
 public:
  virtual ~CommCall() = default;

  double bytes() const { return static_cast<double>(count_) * sizeof(float); }  // as nccl-tests counts them
  virtual void fill();                               // before every call: an in-place call has overwritten its input
  virtual double run() = 0;                          // seconds
  virtual int64_t wrong() { return count_wrong(); }  // elements of the result that are not what they must be

 protected:
  // About `bytes`: elements are divided evenly over the ranks, one at least for each.
  CommCall(Collective op, CommPlace place, int64_t bytes, const Group& group);
  int64_t count_wrong() const;

  Collective op_;
  CommPlace place_;
  Group group_;
  int64_t count_, part_;  // elements in all, and of one rank
  std::vector<float> given_, result_;
};

// The channel outlives it.
std::unique_ptr<CommCall> make_host_call(Collective op, CommPlace place, int64_t bytes, const Group& group,
                                         Channel& channel);

}  // namespace sextant
