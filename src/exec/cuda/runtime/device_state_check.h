// DeviceStateCheck: StateCheck (exec/cpu/state_check.h) of states in a GPU's memory. What is compared on a stream is
// known to the host only when it has waited for the stream. States in the host's memory are not checked.
#pragma once

#include <string>
#include <vector>

#include "exec/addresses.h"
#include "exec/cuda/runtime/state_sums.h"
#include "exec/cuda/runtime/summed_launch.h"
#include "exec/state_checksums.h"
#include "ir/walk.h"

namespace sextant {

// The sums of an arena, which the Programs that share its bytes share.
class DeviceChecksums {
 public:
  DeviceChecksums() = default;
  ~DeviceChecksums();
  DeviceChecksums(const DeviceChecksums&) = delete;
  DeviceChecksums& operator=(const DeviceChecksums&) = delete;

  // Places are given while Programs are bound, before memory is taken for the sums.
  int32_t place_of(int64_t offset);
  void allocate(cudaStream_t stream);             // once
  DeviceStateSum* sums() const { return sums_; }  // null before that
  ChangedStateReport* report() const { return report_; }

 private:
  StateChecksums places_;
  int32_t count_ = 0;
  DeviceStateSum* sums_ = nullptr;
  ChangedStateReport* report_ = nullptr;
};

class DeviceStateCheck {
 public:
  DeviceStateCheck(const Program& program, const Addresses& addresses, DeviceChecksums& checksums);

  bool has_checksums() const { return checksums_.sums() != nullptr; }
  void record_all(cudaStream_t stream);
  void verify_all(cudaStream_t stream) const;
  // The ops that these steps start are about to write, and have written. Puts work on the stream, as a launch does.
  void verify_before(std::span<const WalkStep> steps, cudaStream_t stream) const;
  void record_after(std::span<const WalkStep> steps, cudaStream_t stream) const;
  // For the ops that these steps start, of one kind, where their kernel verifies and records itself and there are
  // checksums: what it needs beside the calls.
  SummedLaunch summed_launch(const WalkStep& step) const {
    return has_checksums() ? summed_[static_cast<size_t>(step.op)].launch : nullptr;
  }
  void launch_summed(std::span<const WalkStep> steps, CudaCalls calls) const;
  // Corruption where a comparison that has ended has found a change.
  void rethrow(int rank, const std::string& place) const;

 private:
  DeviceChecksums& checksums_;
  std::vector<const Value*> values_;  // as states_
  std::vector<DeviceState> states_;
  std::vector<std::vector<DeviceState>> before_, after_;  // by op, without those that its kernel sums
  struct SummedOp {
    SummedLaunch launch = nullptr;  // null: its kernel does not
    SummedOutputs places;
  };
  static SummedOp take_summed(const Op& op, std::vector<DeviceState>& before, std::vector<DeviceState>& after,
                              const Addresses& addresses);

  std::vector<SummedOp> summed_;  // by op
};

}  // namespace sextant
