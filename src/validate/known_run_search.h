// Known runs beside what a search finds for them: the same model, batch, devices, machine and software, any layout.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "search/search.h"
#include "validate/known_run.h"

namespace sextant {

// By predicted times, both of them.
enum class SearchVerdict : uint8_t {
  faster,  // than the published layout
  same,    // as fast as the published layout: that one, or another that takes as long
  equal,   // slower, but nearer to it than predictions are known
  slower,
};
std::string_view name_of(SearchVerdict verdict);

struct KnownRunSearch {
  KnownRun run;
  Candidate published, found;  // the layout of the run, and the fastest of a search
  PredictionInterval interval;
  size_t considered = 0;  // layouts

  double ratio() const { return found.seconds / published.seconds; }
  SearchVerdict verdict() const;
};

// A layout may need as much memory as the published one, which is known to have run, or what a search allows by
// default. `progress` is told each run as it begins.
struct KnownRunSearchRequest {
  const std::vector<KnownRun>& runs;
  const IntervalModel& intervals;
  LayoutLimits limits = {};  // of layouts that are tried
  std::function<void(std::string_view)> progress = {};
};
std::vector<KnownRunSearch> search_known_runs(const KnownRunSearchRequest& request);

std::string known_run_searches_text(const std::vector<KnownRunSearch>& results);
std::string known_run_searches_json(const std::vector<KnownRunSearch>& results);

}  // namespace sextant
