// The figures of a plan as pages show them, for whichever plan: the answer, where the time of a step goes, what the
// fullest device holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/run_plan.h"
#include "view/page.h"

namespace sextant {

// Does it fit, how fast, how long, how much.
std::vector<PageFigure> plan_figures(const RunPlan& plan);

// Of a plan with a step: its parts, which add up to all of it.
PageTable step_table(const RunPlan& plan);

// Contents of the memory of the fullest device at its fullest moment.
PageTable fullest_table(const RunPlan& plan);
const RankClass& fullest_class(const RunPlan& plan);

std::string milliseconds(double seconds);
std::string percent_text(double share);
// "3 nodes"
std::string counted(int64_t n, std::string_view what);

}  // namespace sextant
