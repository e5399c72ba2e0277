// Any text as a table of published runs: it is refused with a UserError, or every row is converted to a run or says why
// not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "validate/foreign.h"
#include "validate/published_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  static const std::vector<SoftwareProfile> kProfiles{{.name = "any", .matches = {""}}};
  try {
    for (const PublishedRun& run :
         parse_published_runs(std::string_view(reinterpret_cast<const char*>(data), size), "runs.csv")) {
      ConvertedRun converted = to_run_config(run, kProfiles);
      if (converted.why_not.empty() && converted.run.config.batch.sequences <= 0) std::abort();
    }
  } catch (const UserError&) {
  }
  return 0;
}
