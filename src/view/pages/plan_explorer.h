// The part of a plan's page that can be played with: sliders over a grid of plans, and of the chosen one its figures,
// the timeline of its step and what the fullest device holds meanwhile. All plans stand in the page as JSON, each as
// `plan --json` has it; a script of the page shows one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answers/plan_grid.h"

namespace sextant {

// The command that plans a point, around its overrides: "sextant plan CONFIG", " --machine h200".
struct PointCommand {
  std::string before, behind;
};

// HTML before and after the figures of the chosen plan, whose element has this id.
struct ExplorerHtml {
  std::string before, behind;
};
inline constexpr std::string_view kChosenFigures = "chosen-figures";

class PlanExplorer {
 public:
  // One plan of the grid, from whichever thread: what the page shows of it is made here.
  static std::string entry_of(const GridPlan& planned);

  // `entries` by point of the grid, empty where there is no plan.
  PlanExplorer(const PlanGrid& grid, const std::vector<std::string>& entries) : grid_(grid), entries_(entries) {}

  ExplorerHtml html(const PointCommand& command) const;

 private:
  std::string controls() const;
  std::string data(const PointCommand& command) const;

  const PlanGrid& grid_;
  const std::vector<std::string>& entries_;
};

}  // namespace sextant
