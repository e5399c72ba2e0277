// Schedules as CSV text, to bring one's own or to look at one in a spreadsheet. One row per rank, in order, one cell
// per action, in issue order:
//
//   placement,v            optional first row: loop (the default), v or both-ways
//   F0.0,F0.1,F1.0,B1.0    F, B or W, then CHUNK.MICROBATCH
//   F0,F1,B0,B1            chunk 0 may be left out
//   F0.3+B1.1+W1.1         actions that run as one: a forward beside a backward, a backward and its weight gradients
//
// Empty cells (a bubble drawn in a spreadsheet), spaces around cells and lines that begin with # are passed over.
// Ranks, chunks and microbatches are counted from the cells. What is read has passed check(); reading csv_text(s) gives
// s again, but for its name.
#pragma once

#include <string>
#include <string_view>

#include "schedule/pipeline.h"

namespace sextant {

// The schedule's name is "csv". UserError names `place` (the file), the line and the cell.
PipelineSchedule schedule_from_csv(std::string_view text, std::string_view place = "schedule.csv");

std::string csv_text(const PipelineSchedule& schedule);

}  // namespace sextant
