// Costs of a model's blocks and ends in a layout, from Programs of few blocks. Blocks are alike: the difference between
// the Programs of some blocks and of one block more is the cost of each further block (search_bound.h adds them up).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"
#include "schedule/pipeline.h"
#include "search/search_space.h"
#include "search/stage_figures.h"

namespace sextant {

// The run, model and machine that bounds are computed for, whatever the layout.
struct BoundSubject {
  const RunConfig& run;  // without evaluation
  const ModelSpec& spec;
  const Machine& machine;
  const SoftwareProfile& profile;
  const Target* target = nullptr;  // null: an accelerator under the profile
  double expert_imbalance = 1;     // as Pricer has it
};

// Whether the bytes of a rank are those of other software.
bool estimates_memory(const BoundSubject& subject);
bool sends_activations(const BoundSubject& subject);  // to the host
// Whether a stage of one of so many blocks has any whose activations can leave.
bool may_send(const std::vector<int>& blocks);

// Which blocks are on which rank.
struct StageLayout {
  PipelineShape shape;
  StagePlacement placement = StagePlacement::loop;
  std::vector<int> blocks;  // of each stage

  bool folds() const { return placement == StagePlacement::v && shape.ranks > 1; }
  // Where the V turns, a stage hands on to one of the same rank.
  bool turns(int stage) const { return folds() && stage == shape.ranks - 1; }
  bool has_both_ends(int rank) const { return folds() && rank == 0; }
};

struct BlocksAndEnds {
  StageFigures block, first_end, last_end;
  // Of a stage that is neither the first nor the last: its last blocks keep on the device what others send away.
  StageFigures stage_end;

  std::array<StageFigures*, 4> parts() { return {&block, &first_end, &last_end, &stage_end}; }
};

// Blocks and ends of one way to compute them.
struct ModelFigures : BlocksAndEnds {
  // Of stages of one block or none, where what longer ones save goes to the host.
  std::optional<BlocksAndEnds> few;
  // Figures counted with each end that exist once on a rank with both ends: the embedding of a tied head.
  StageFigures tied;
  double message = 0;                          // seconds from the end of a stage's region until another may begin
  double first_scratch = 0, last_scratch = 0;  // bytes beside what is held, on the first and the last stage of several

  StageFigures stage(const StageLayout& stages, int at) const;
  StageFigures rank(const StageLayout& stages, int rank) const;  // all its stages together
  std::vector<StageFigures*> all_parts();
};

struct FiguresRequest {
  LayoutChoice choice;
  int64_t runs = 1;    // microbatches of the Program that is lowered for them, one or several
  bool folds = false;  // whether the first rank has the last stage too
};

// UserError where some pass cannot make the layout.
ModelFigures lower_figures(const BoundSubject& subject, const Target& target, const FiguresRequest& request);

}  // namespace sextant
