// Runs as the page reads them: texts of JSON, in pieces. Runs are looked up by id for each piece: they may go, and
// grow, while an answer is sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/answer_body.h"
#include "watch/decimate.h"
#include "watch/run_set.h"

namespace sextant {

// Names, states and last values of all runs, and the description of each field.
BodyPieces runs_json(const RunSet& runs, int64_t now);

struct SeriesQuestion {
  std::string field;
  std::vector<int> runs;  // each once
  SeriesRange range;      // its parts are fewer where runs are many: kMostSeriesParts in all
  double smoothing = 0;
};
inline constexpr size_t kMostSeriesParts = 400'000;
// Runs that are gone or have no such field are left out.
BodyPieces series_json(const RunSet& runs, SeriesQuestion question);

// A list over the rows that are kept of it: places, values, and the places at which each row ends. null: no value.
std::string list_json(const WatchedRun& run, const ListColumn& list, XAxis axis);

// The last events of each run: at most kMostEventsShown, and of kMostEventBytes an equal share.
inline constexpr size_t kMostEventsShown = 2000, kMostEventBytes = size_t{8} << 20;
BodyPieces events_json(const RunSet& runs, const std::vector<int>& asked);

// Everything above in one object, decimated to so many parts for each series: what an exported page holds.
std::string export_json(const RunSet& runs, size_t parts, int64_t now);

}  // namespace sextant
