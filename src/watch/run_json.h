// Runs as the page reads them: texts of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/decimate.h"
#include "watch/run_set.h"

namespace sextant {

// What all runs are and how they stand, and what is known of each field.
std::string runs_json(const RunSet& runs, int64_t now);

struct SeriesQuestion {
  std::string field;
  std::vector<int> runs;
  SeriesRange range;
  double smoothing = 0;
};
// Runs that are gone or have no such field are left out.
std::string series_json(const RunSet& runs, const SeriesQuestion& question);

// A list over the rows that are kept of it.
std::string list_json(const WatchedRun& run, const ListColumn& list, XAxis axis);

std::string events_json(const RunSet& runs, const std::vector<int>& ids);

// Everything above in one object, decimated to so many parts for each series: what an exported page holds.
std::string export_json(const RunSet& runs, size_t parts, int64_t now);

}  // namespace sextant
