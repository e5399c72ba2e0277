// The chronicle of a run: its events in order, with how the loss stood, as Markdown or as a page with curves.
#pragma once

#include <string>

#include "watch/watched_run.h"

namespace sextant {

std::string run_log_markdown(const WatchedRun& run, int64_t now);
std::string run_log_html(const WatchedRun& run, int64_t now);
std::string run_log_json(const WatchedRun& run, int64_t now);

}  // namespace sextant
