// A microbatch computed twice: by the rank whose it is and by another data-parallel rank. With the same weights and
// samples both must get the same bits for the loss and for every gradient before it is summed over ranks. Where they do
// not, further runs decide which rank is wrong: a third rank's, or, of two ranks, which of them gives another answer
// when it is asked again. Nothing of the step that follows depends on any of this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/collectives.h"
#include "comm/host_group.h"
#include "train/trainer.h"

namespace sextant {

// UserError where the run has no two ranks that compute the same thing from the same samples.
void require_microbatch_check(const RunConfig& run, const Mesh& mesh, const Target& target);

class MicrobatchCheck {
 public:
  // All must outlive this.
  MicrobatchCheck(Trainer& trainer, Transport* transport, HostGroup& all);

  // Called by all ranks together, between steps: the first microbatch of `step`, whose samples begin at `first_sample`.
  // Corruption on one of the ranks where two differ, and RunEnded on the others. `drill`: see Trainer.
  void check(int64_t step, int64_t first_sample, const StepDrill& drill);

 private:
  using Gathered = std::vector<std::vector<uint64_t>>;  // by member of the group, then by gradient

  // Hashes that every member computes for the rows of the member `shift` places after it.
  Gathered hashes(int64_t step, int64_t first_sample, int shift, const StepDrill& drill = {});
  [[noreturn]] void report(int64_t step, size_t owner, size_t other, size_t gradient, int wrong);

  Trainer& trainer_;
  Transport* transport_;
  HostGroup& all_;
  Group peers_;                // ranks that differ in their samples alone
  std::vector<int64_t> rows_;  // the first row of each in a microbatch
};

}  // namespace sextant
