// GradientHashes: hashes of the values that a rank computes alone for a microbatch: losses, and gradients before sums
// over ranks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "exec/executor.h"

namespace sextant {

class GradientHashes final : public OpObserver {
 public:
  explicit GradientHashes(const Program& program) : program_(program) {}

  void after(const OpRun& run) override;

  std::vector<uint64_t> take_values() { return std::move(values_); }
  std::vector<std::string> take_paths() { return std::move(paths_); }

 private:
  bool is_to_be_summed(const Value& value) const;

  const Program& program_;
  std::vector<uint64_t> values_;
  std::vector<std::string> paths_;
};

}  // namespace sextant
