// Any text as a table of runs: it is refused with a UserError, or read as positive finite numbers; a law is then fitted
// or the runs are refused, and the law is finite too.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "laws/fit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  try {
    std::vector<LossRun> runs = runs_from_csv(std::string_view(reinterpret_cast<const char*>(data), size));
    for (const LossRun& run : runs)
      for (double value : {run.params, run.tokens, run.loss})
        if (!(value > 0 && std::isfinite(value))) std::abort();
    if (runs.size() > 100) return 0;  // nothing new, and slow
    LawFit fit = fit_law(runs, "runs.csv", {.resamples = 1});
    for (const LawConstants& c : {fit.law.constants, fit.resamples.front()})
      for (double value : {c.E, c.A, c.B, c.alpha, c.beta})
        if (!(value > 0 && std::isfinite(value))) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
