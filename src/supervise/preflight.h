// Findings of `doctor --json` before a start, as far as the supervisor acts on them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct PreflightFinding {
  std::string text;   // "burn, corruption: …, on rank 1 (n2); advice"
  std::string where;  // as doctor says it: "rank 1 (n2)", "n2", or nothing for all ranks
  bool is_failure = false;
};

// Failures and warnings. Text that is no report of doctor's gives none: its exit code says enough then.
std::vector<PreflightFinding> preflight_findings(std::string_view json);

// Whether a finding is about this host: its name stands there as a whole word.
bool is_about(const PreflightFinding& finding, std::string_view host);

}  // namespace sextant
