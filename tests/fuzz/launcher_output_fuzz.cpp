// Any text as what mpirun and doctor have printed: a rank is named or not, and what is found has whole words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "supervise/launcher_report.h"
#include "supervise/preflight.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (std::optional<LostRank> lost = lost_rank_in(text))
    if (lost->rank < 0 || text.find(lost->host) == std::string_view::npos) std::abort();
  for (const PreflightFinding& finding : preflight_findings(text))
    if (!finding.where.empty() && !is_about(finding, finding.where)) std::abort();
  return 0;
}
