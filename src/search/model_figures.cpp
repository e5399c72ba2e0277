#include "search/model_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "plan/foreign_memory.h"
#include "plan/memory_fit.h"
#include "plan/memory_moments.h"
#include "run/run_target.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

// A block more than stages have that keep what they save (passes/offload_activations.h): from here on each block sends
// as much to the host.
constexpr int kFewestThatSend = 3;
// Stages of fewer blocks send nothing, whatever stands behind their blocks.
constexpr int kFewestThatMaySend = 2;

// The most bytes at a time when all blocks but the last have been run forward and none of them backward: blocks that
// are added before them then only add what they hold.
double fullest_with_all_blocks(const Program& program, int last_block) {
  std::vector<MemoryMoment> moments = memory_moments(program);
  double fullest = 0;
  size_t at = 0;
  for (const Region& region : program.regions) {
    bool there = region.kind == RegionKind::backward;
    for (const Op& op : region.ops) {
      if (region.kind == RegionKind::forward && op.block == last_block) there = true;
      if (region.kind != RegionKind::forward && op.block >= 0 && op.block < last_block) there = false;
      if (there) fullest = std::max(fullest, static_cast<double>(moments[at].parts.total()));
      ++at;
    }
  }
  return fullest;
}

StageFigures difference(StageFigures a, const StageFigures& b) {
  return a.add(b, -1);
}

// Of what both ends count, what is there once where they are on one rank: what stays, its update and what is sent for
// it.
StageFigures counted_twice(const StageFigures& ends, const StageFigures& together) {
  const StageFigures more = difference(ends, together);
  StageFigures out;
  auto keep = [](double part) { return std::max(0.0, part); };
  for (double StageFigures::*part :
       {&StageFigures::weights, &StageFigures::gradients, &StageFigures::optimizer, &StageFigures::weight_shards,
        &StageFigures::gradient_shards, &StageFigures::optimizer_shards})
    out.*part = keep(more.*part);
  for (double OffloadedBytes::*part :
       {&OffloadedBytes::weights, &OffloadedBytes::optimizer, &OffloadedBytes::optimizer_shards, &OffloadedBytes::nvme,
        &OffloadedBytes::nvme_shards, &OffloadedBytes::for_update})
    out.offloaded.*part = keep(more.offloaded.*part);
  for (double RegionWork::*part : {&RegionWork::beside, &RegionWork::beside_at_last, &RegionWork::copies_at_last}) {
    out.update.*part = keep(more.update.*part);
    out.backward.*part = keep(more.forward.*part + more.backward.*part + more.weight.*part);
  }
  out.update.compute = keep(more.update.compute);
  return out;
}

class FiguresOfFewBlocks {
 public:
  FiguresOfFewBlocks(const BoundSubject& subject, const Target& target, const FiguresRequest& request, bool sends)
      : subject_(subject),
        target_(target),
        choice_(request.choice),
        runs_(request.runs),
        sends_(sends),
        piped_(choice_.mesh.pp > 1),
        last_blocks_(sends ? kFewestThatSend : 1) {
    const ScheduleDef* schedule = find_schedule(choice_.schedule);
    LayoutChoice few = choice_;
    few.mesh.pp = piped_ ? 2 : 1, few.chunks = 1;
    few.schedule = schedule && schedule->defers_weights ? ScheduleKind::zb_h1 : ScheduleKind::one_f_one_b;
    config_ = config_of(few);
  }

  // Stages of one and of two blocks; along a pipeline also a last stage of one. Where weights are gathered one block
  // ahead, only from the third block on do blocks take the same: then of two and of three.
  ModelFigures make() const {
    const bool gathers = choice_.mesh.zero == 3;
    const int fewest = fewest_blocks(gathers);
    std::vector<Program> one = lowered(fewest), two = lowered(fewest + 1);
    Pricer of_one = pricer(), of_two = pricer();
    StageFigures first = figures_of(one.front(), of_one), longer = figures_of(two.front(), of_two);
    ModelFigures model;
    model.block = difference(longer, first);
    if (!piped_) {
      model.block.passing = model.block.forward_to_backward;
      first.passing =
          std::max(0.0, fullest_with_all_blocks(two.front(), fewest) - longer.persistent()) - model.block.passing;
    }
    model.first_end = first;
    model.first_end.add(model.block, -fewest);
    if (!piped_) {
      add_foreign(model, one, two);
      return model;
    }
    StageFigures last = figures_of(one.back(), of_one);
    model.last_end = last;
    model.last_end.add(model.block, -last_blocks_);
    // A single microbatch has given back what it held when its gradients are on their way.
    if (runs_ == 1)
      for (StageFigures* part : model.parts()) part->passing = 0;
    if (gathers)
      for (StageFigures* part : model.parts()) part->forward_alone = part->backward_alone = part->weight_alone = 0;
    model.message = std::min(first.forward.arrives_after, last.backward.arrives_after);
    model.first_scratch = std::min(scratch_of(one.front(), first), scratch_of(two.front(), longer));
    // With gradients in shards, those of the head and of the one block are on their way at the same time.
    if (choice_.mesh.zero < 2) model.last_scratch = scratch_of(one.back(), last);
    add_foreign(model, one, two);
    return model;
  }

  // Of a V of four blocks, whose first rank has the first and the last.
  StageFigures tied_part(const ModelFigures& model) const {
    LayoutChoice few = choice_;
    few.mesh.pp = few.chunks = 2, few.schedule = ScheduleKind::zbv;
    std::vector<Program> programs = lowered(config_of(few), {1, 1, 1, 1});
    Pricer of_both = pricer();
    StageFigures ends = model.first_end;
    ends.add(model.last_end, 1).add(model.block, 2);
    StageFigures together = figures_of(programs.front(), of_both);
    if (estimates_memory(subject_)) scale_to_foreign(together);
    return counted_twice(ends, together);
  }

 private:
  int fewest_blocks(bool gathers) const {
    const auto layers = static_cast<int>(subject_.spec.layers);
    if (sends_) return piped_ ? kFewestThatSend : std::min(kFewestThatSend, layers);
    return gathers && !piped_ && layers > 2 ? 2 : 1;
  }

  RunConfig config_of(const LayoutChoice& few) const {
    RunConfig config = with_choice(subject_.run, few);
    config.batch.sequences = choice_.microbatch * choice_.mesh.dp * runs_;
    if (!sends_) config.offload.activations = OffloadSection{}.activations;
    return config;
  }

  std::vector<Program> lowered(RunConfig config, const std::vector<int>& blocks) const {
    ModelSpec spec = subject_.spec;
    spec.layers = std::accumulate(blocks.begin(), blocks.end(), 0);
    if (blocks.size() > 1) config.pipeline.layers = fmt::format("{}", fmt::join(blocks, ","));
    return lower_run(config, spec, target_, Checks::none).programs.train;
  }

  std::vector<Program> lowered(int first_blocks) const {
    return piped_ ? lowered(config_, {first_blocks, last_blocks_}) : lowered(config_, {first_blocks});
  }

  Pricer pricer() const {
    return Pricer(subject_.machine, subject_.machine.efficiency(), subject_.profile, subject_.expert_imbalance);
  }

  void scale_to_foreign(StageFigures& part) const {
    const double gradients = foreign_gradients(subject_.profile), optimizer = foreign_optimizer(subject_.profile);
    part.gradients *= gradients, part.gradient_shards *= gradients;
    part.optimizer *= optimizer, part.optimizer_shards *= optimizer;
  }

  // Gradients and optimizer state as other software keeps them, and what it has beside our buffers.
  void add_foreign(ModelFigures& model, const std::vector<Program>& one, const std::vector<Program>& two) const {
    if (!estimates_memory(subject_)) return;
    for (StageFigures* part : model.parts()) scale_to_foreign(*part);
    auto extra = [&](const Program& program) { return foreign_extra(program, config_, subject_.profile); };
    double saved = extra(two.front()).saved - extra(one.front()).saved;
    model.block.forward_to_backward += saved;
    if (!piped_) model.block.passing += saved;
    (piped_ ? model.last_end : model.first_end).passing += extra(one.back()).working;
  }

  const BoundSubject& subject_;
  const Target& target_;
  const LayoutChoice& choice_;
  const int64_t runs_;
  const bool sends_, piped_;
  const int last_blocks_;
  RunConfig config_;
};

}  // namespace

bool estimates_memory(const BoundSubject& subject) {
  return memory_basis(&subject.machine, &subject.profile, subject.run, subject.spec.experts.has_value()) ==
         MemoryBasis::estimate;
}

bool sends_activations(const BoundSubject& subject) {
  return subject.run.offload.activations == OffloadedActivations::block;
}

bool may_send(const std::vector<int>& blocks) {
  return std::ranges::any_of(blocks, [](int count) { return count >= kFewestThatMaySend; });
}

StageFigures ModelFigures::stage(const StageLayout& stages, int at) const {
  const int count = stages.blocks[static_cast<size_t>(at)];
  const bool last = at == stages.shape.stages() - 1;
  const BlocksAndEnds& figures = few && count < kFewestThatMaySend ? *few : *this;
  StageFigures out;
  out.add(figures.block, count);
  if (at == 0) out.add(figures.first_end, 1);
  if (last) out.add(figures.last_end, 1);
  if (at > 0 && !last) out.add(figures.stage_end, 1);
  // No message stands behind its blocks: one more of them keeps what it saves.
  if (&figures == this && few && stages.turns(at)) out.add(few->block, 1).add(block, -1);
  return out;
}

StageFigures ModelFigures::rank(const StageLayout& stages, int rank) const {
  StageFigures all;
  for (int chunk = 0; chunk < stages.shape.chunks; ++chunk)
    all.add(stage(stages, stage_of(stages.shape, stages.placement, rank, chunk)), 1);
  if (stages.has_both_ends(rank)) all.add(tied, -1);
  return all;
}

std::vector<StageFigures*> ModelFigures::all_parts() {
  std::vector<StageFigures*> all{&tied};
  for (StageFigures* part : parts()) all.push_back(part);
  if (few)
    for (StageFigures* part : few->parts()) all.push_back(part);
  return all;
}

ModelFigures lower_figures(const BoundSubject& subject, const Target& target, const FiguresRequest& request) {
  const bool sends = sends_activations(subject), piped = request.choice.mesh.pp > 1;
  const bool tied = request.folds && piped && subject.spec.tied_head;
  FiguresOfFewBlocks of_all(subject, target, request, sends);
  ModelFigures model = of_all.make();
  if (sends && piped) {
    // Figures of a stage's end include the data that its last blocks keep: the difference to an end whose blocks all
    // keep everything.
    FiguresOfFewBlocks of_few(subject, target, request, false);
    const ModelFigures keeping = of_few.make();
    model.stage_end = difference(model.first_end, keeping.first_end);
    model.message = std::min(model.message, keeping.message);
    model.first_scratch = std::min(model.first_scratch, keeping.first_scratch);
    model.last_scratch = std::min(model.last_scratch, keeping.last_scratch);
    model.few = keeping;
    if (tied) model.tied = of_few.tied_part(keeping);
  } else if (tied) {
    model.tied = of_all.tied_part(model);
  }
  return model;
}

}  // namespace sextant
