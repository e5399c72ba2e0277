// A simulated (or measured) step as a picture: per rank a row for its compute and a thin one for the messages beside
// it, coloured by phase and by axes, waits hatched. In: the Trace of a step. Out: one SVG text below a megabyte,
// however long the Trace; a block's tooltip says what it is, when, and what it is made of.
#pragma once

#include <string>
#include <vector>

#include "base/trace.h"
#include "view/trace_blocks.h"

namespace sextant {

struct SimTimelineText {
  std::string title = "one step";
  std::string row = "stage";  // what a rank of the Trace is called
};

// The class ("c3") of the pictures' style that a kind is drawn in. Phases have the first colours whether or not all of
// them occur, so that forward is always blue.
size_t timeline_colour(const std::vector<TraceKind>& kinds, size_t kind);

std::string sim_timeline_svg(const Trace& trace, const SimTimelineText& text = {});

}  // namespace sextant
