// A simulated (or measured) step as a picture: per rank a row for its compute and a thin one for the messages beside
// it, coloured by phase and by axes, waits hatched. In: the Trace of a step. Out: one SVG text below a megabyte,
// however long the Trace; a block's tooltip says what it is, when, and what it is made of.
#pragma once

#include <string>

#include "base/trace.h"

namespace sextant {

struct SimTimelineText {
  std::string title = "one step";
  std::string row = "stage";  // what a rank of the Trace is called
};

std::string sim_timeline_svg(const Trace& trace, const SimTimelineText& text = {});

}  // namespace sextant
