// Corruption: a check has found numbers that are not what was computed, kept or sent. The run ends by it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant {

struct CorruptionFacts {
  std::string check;        // which one found it: "gemm", "collective", "microbatch", "replicas", "memory"
  std::optional<int> rank;  // that is wrong, as far as can be said
  std::string op = {};      // or tensor
  int layer = -1;
  std::string verdict = {};  // "transient", "persistent"; empty: unknown
};

class Corruption : public RunError {
 public:
  Corruption(CorruptionFacts facts, std::string_view place, std::string_view what)
      : RunError(
            place, what,
            "a device, memory or network has failed, or is about to: examine the host (doctor --burn 60), and resume "
            "from a checkpoint that is older than the fault",
            ExitCode::corruption),
        facts_(std::move(facts)) {}
  const CorruptionFacts& facts() const { return facts_; }

 private:
  CorruptionFacts facts_;
};

}  // namespace sextant
