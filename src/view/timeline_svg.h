// A timed schedule as a picture: one row per rank, a box for each F, B and W with its microbatch, chunks by shade,
// bubbles hatched, a time axis, a legend. In: what simulate_schedule gives. Out: one SVG text that needs no other file;
// a box's tooltip says its action and times.
#pragma once

#include <string>

#include "schedule/timing.h"

namespace sextant {

struct TimelineText {
  std::string title;            // empty: the schedule's name and shape
  std::string time_unit = "s";  // on the axis
};

std::string timeline_svg(const TimedSchedule& run, const TimelineText& text = {});

}  // namespace sextant
