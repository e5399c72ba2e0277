#include "search/search_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cost/planned_target.h"
#include "exec/sim/rank_walk.h"
#include "models/model.h"
#include "passes/stages.h"
#include "plan/foreign_memory.h"
#include "plan/memory_fit.h"
#include "plan/memory_moments.h"
#include "plan/predict.h"
#include "run/run_target.h"
#include "schedule/schedules.h"
#include "schedule/timing.h"

namespace sextant {

namespace {

// Rounding to whole buckets and aligned buffers differs a little between few blocks and many.
constexpr double kSafety = 0.995;
// Microbatches of a Program that stands for more: gradients are summed up, and stages hold more than one.
constexpr int64_t kSeveral = 2;

bool defers_weights(const LayoutChoice& choice) {
  const ScheduleDef* schedule = find_schedule(choice.schedule);
  return schedule && schedule->defers_weights;
}

// Least seconds of a rank per microbatch. Where a forward runs beside a backward, messages may travel under compute.
double least_per_microbatch(bool pairs, const StageFigures& part) {
  if (!pairs) return part.least_forward() + part.least_backward() + part.least_weight();
  double hidden = part.forward.messages + part.backward.messages + part.weight.messages;
  return std::max(part.per_microbatch() - hidden, part.host());
}

// Until a stage's part of the first microbatch has come to the next stage, and until its part of the last one has come
// to the stage before.
double least_before_next(bool pairs, const ModelFigures& model, const StageFigures& part) {
  double seconds = pairs ? part.forward.compute - part.forward.messages : part.least_forward();
  return std::max(0.0, seconds + std::min(0.0, model.message));
}
double least_after(bool pairs, const ModelFigures& model, const StageFigures& part) {
  double seconds = pairs ? part.backward.compute - part.backward.messages : part.least_backward();
  return std::max(0.0, seconds + std::min(0.0, model.message));
}

// The actions of a unit in letters: which regions run, whatever their chunks and microbatches.
std::string letters_of(std::span<const Action> unit) {
  std::string letters;
  for (const Action& action : unit)
    letters += action.region == RegionKind::forward ? 'F' : action.region == RegionKind::backward ? 'B' : 'W';
  return letters;
}

UnitTimes times_of(const UnitAlone& alone, std::span<const Action> unit) {
  UnitTimes times{.seconds = alone.seconds, .forward_arrives = alone.seconds, .backward_arrives = alone.seconds};
  std::optional<double> received, sent;
  for (const UnitAlone::StageMessage& message : alone.messages) {
    bool forward = unit[static_cast<size_t>(message.part)].region == RegionKind::forward;
    if (message.kind == Collective::send) {
      (forward ? times.forward_arrives : times.backward_arrives) = message.arrives;
      if (forward) sent = message.at;
    } else if (!forward && is_pair(unit)) {
      times.backward_received = message.at + message.lane_busy, received = message.at;
    }
  }
  times.forward_sent_behind = sent && received && *sent >= *received;
  return times;
}

}  // namespace

LayoutBounds::LayoutBounds(const Subject& subject)
    : subject_(subject),
      target_(subject.target ? *subject.target : planned_target(subject.profile, determinism_of(subject.run))),
      whole_(build_model(subject.spec, {.seq = subject.run.batch.seq}, single_rank_mesh())) {}

template <class Known, class Make>
const Known& LayoutBounds::once(Table<Known>& table, const std::string& key, Make make) {
  Slot<Known>* slot = nullptr;
  {
    std::lock_guard lock(guard_);
    auto& place = table[key];
    if (!place) place = std::make_unique<Slot<Known>>();
    slot = place.get();
  }
  std::call_once(slot->once, [&] { slot->known = make(); });
  return slot->known;
}

int64_t LayoutBounds::microbatches(const LayoutChoice& choice) const {
  return subject_.run.batch.sequences / (choice.microbatch * choice.mesh.dp);
}

const ModelFigures& LayoutBounds::figures(const FiguresRequest& request) {
  FiguresRequest known = request;
  LayoutChoice& c = known.choice;
  c.mesh.pp = std::min<int64_t>(c.mesh.pp, 2), c.chunks = 1;
  c.schedule = defers_weights(c) ? ScheduleKind::zb_h1 : ScheduleKind::one_f_one_b;
  known.folds = request.folds && subject_.spec.tied_head;
  std::string key = fmt::format("{} {} {}", overrides_text(c), known.runs, known.folds);
  return once(figures_, key, [&] { return lower_figures(subject_, target_, known); });
}

StageLayout LayoutBounds::stages_of(const LayoutChoice& choice) {
  return {.shape = {static_cast<int>(choice.mesh.pp), static_cast<int>(choice.chunks),
                    static_cast<int>(microbatches(choice))},
          .placement = find_schedule(choice.schedule)->placement,
          .blocks = blocks(static_cast<int>(choice.stages()))};
}

const std::vector<int>& LayoutBounds::blocks(int stages) {
  return once(blocks_, std::to_string(stages), [&] { return balanced_blocks(whole_, stages); });
}

const LayoutBounds::Pipeline& LayoutBounds::pipeline(const LayoutChoice& choice) {
  std::string key =
      fmt::format("{} {} {} {}", word_of(choice.schedule), choice.mesh.pp, choice.chunks, microbatches(choice));
  return once(pipelines_, key, [&] {
    StageLayout stages = stages_of(choice);
    const PipelineShape shape = stages.shape;
    Pipeline pipe{
        .schedule = make_schedule(*find_schedule(choice.schedule), shape), .stages = std::move(stages), .held = {}};
    pipe.pairs = has_pairs(pipe.schedule);
    pipe.defers_weights = pipe.schedule.defers_weights();
    for (int rank = 0; rank < shape.ranks; ++rank) {
      std::vector<InFlight>& held = pipe.held.emplace_back();
      std::map<int, double> layers;
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        held.push_back(in_flight(pipe.schedule, rank, chunk));
        layers[chunk] = pipe.stages.blocks[static_cast<size_t>(stage_of(shape, pipe.schedule.placement, rank, chunk))];
      }
      pipe.held_at_once.push_back(
          estimates_memory(subject_)
              ? kept_layers(pipe.schedule.ranks[static_cast<size_t>(rank)], layers).share_at_once()
              : 1);
    }
    return pipe;
  });
}

double LayoutBounds::outside_arena() const {
  return subject_.machine.context_bytes + (estimates_memory(subject_) ? subject_.profile.buffer_bytes : 0);
}

const UnitTimes* PairFigures::find(const std::string& actions) const {
  auto found = one.find(actions);
  return found == one.end() || !two.contains(actions) ? nullptr : &found->second;
}

UnitTimes PairFigures::of_blocks(const std::string& actions, int blocks) const {
  const UnitTimes* first = find(actions);
  if (!first) return {};
  const UnitTimes& second = two.find(actions)->second;
  auto at = [&](double UnitTimes::*part) {
    return std::max(0.0, first->*part + (blocks - 1) * (second.*part - first->*part));
  };
  return {.seconds = at(&UnitTimes::seconds),
          .forward_arrives = at(&UnitTimes::forward_arrives),
          .backward_arrives = at(&UnitTimes::backward_arrives),
          .backward_received = std::max(first->backward_received, second.backward_received),
          .forward_sent_behind = first->forward_sent_behind && second.forward_sent_behind};
}

const PairFigures& LayoutBounds::pair_figures(const LayoutChoice& choice) {
  LayoutChoice c = choice;
  c.mesh.pp = std::min<int64_t>(c.mesh.pp, 2);
  return once(pairs_, overrides_text(c), [&] {
    // Weights that come one block ahead fill the lane at first: a second block takes longer than further ones. Units of
    // one and of two blocks send no activations away.
    const bool alike = choice.mesh.zero < 3 && !subject_.run.offload.working_weights && !sends_activations(subject_);
    return alike ? lower_pairs(choice) : PairFigures{};
  });
}

// On a rank between others, which has blocks alone: the second of three, or the one where the V turns.
PairFigures LayoutBounds::lower_pairs(const LayoutChoice& choice) const {
  constexpr int64_t kRuns = 12;  // of which some units are neither first nor last
  const bool piped = choice.mesh.pp > 1, folds = choice.chunks > 1;
  LayoutChoice few = choice;
  few.mesh.pp = !piped ? 1 : folds ? 2 : 3;
  RunConfig config = with_choice(subject_.run, few);
  config.batch.sequences = choice.microbatch * choice.mesh.dp * kRuns;
  auto units = [&](int64_t blocks) {
    ModelSpec spec = subject_.spec;
    spec.layers = !piped ? blocks : folds ? 2 + 2 * blocks : 2 + blocks;
    if (piped) config.pipeline.layers = folds ? fmt::format("1,{0},{0},1", blocks) : fmt::format("1,{},1", blocks);
    std::vector<Program> programs = lower_run(config, spec, target_, Checks::none).programs.train;
    const Program& program = programs[piped ? 1 : 0];
    Pricer pricer(subject_.machine, subject_.machine.efficiency(), subject_.profile, subject_.expert_imbalance);
    RankWalk walk(program, pricer, {});
    std::map<std::string, UnitTimes, std::less<>> found;
    std::set<std::vector<std::pair<RegionKind, int>>> seen;
    for_each_unit(program.schedule, [&](std::span<const Action> unit) {
      if (unit.front().region == RegionKind::update) return;
      for (const Action& action : unit)
        if (action.microbatch == 0 || action.microbatch == kRuns - 1) return;
      std::vector<std::pair<RegionKind, int>> kind;
      for (const Action& action : unit) kind.emplace_back(action.region, action.chunk);
      if (!seen.insert(kind).second) return;
      UnitTimes times = times_of(walk.alone(unit), unit);
      auto [at, fresh] = found.try_emplace(letters_of(unit), times);
      if (!fresh && times.seconds < at->second.seconds) at->second = times;
    });
    return found;
  };
  return {.one = units(1), .two = units(2)};
}

double LayoutBounds::bytes_of(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  double most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double bytes = pipe.stages.has_both_ends(rank) ? -model.tied.persistent() : 0, scratch = 0;
    const double at_once = pipe.held_at_once[static_cast<size_t>(rank)];
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      int at = stage_of(shape, pipe.schedule.placement, rank, chunk);
      StageFigures part = model.stage(pipe.stages, at);
      bytes += part.persistent() + part.passing;
      const InFlight& held = pipe.held[static_cast<size_t>(rank)][static_cast<size_t>(chunk)];
      if (shape.ranks == 1) {  // one microbatch is counted where the most is held; beside it are the others'
        bytes += model.block.forward_to_backward * (pipe.stages.blocks.front() - 1) * (held.forward_to_backward - 1);
        continue;
      }
      bytes += at_once *
               (part.forward_to_backward * held.forward_to_backward + part.forward_to_weight * held.forward_to_weight +
                part.backward_to_weight * held.backward_to_weight);
      if (at == 0) scratch = std::max(scratch, model.first_scratch);
      if (at == shape.stages() - 1) scratch = std::max(scratch, model.last_scratch);
    }
    most = std::max(most, bytes + scratch);
  }
  return kSafety * most + outside_arena();
}

// The bytes of each space. What is on its way to the update may lie where saved activations have been.
LeastCost LayoutBounds::cost_of(double seconds, const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  LeastCost least{.seconds = kSafety * seconds, .bytes = bytes_of(model, pipe)};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const OffloadedBytes all = model.rank(pipe.stages, rank).offloaded;
    double held = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk)
      held += model.stage(pipe.stages, stage_of(shape, pipe.stages.placement, rank, chunk)).offloaded.held *
              pipe.held[static_cast<size_t>(rank)][static_cast<size_t>(chunk)].forward_to_backward;
    least.host_bytes =
        std::max(least.host_bytes, kSafety * (all.weights + all.optimizer + std::max(held, all.for_update)));
    least.nvme_bytes = std::max(least.nvme_bytes, kSafety * all.nvme);
  }
  return least;
}

double LayoutBounds::slowest(const LayoutChoice& choice) const {
  return slowest_of(subject_.machine.efficiency(), choice.devices());
}

// Nobody is waited for: compute, what waits for messages at its end, and the pace lost beside those that travel.
double LayoutBounds::seconds_on_one_stage(const ModelFigures& model, const Pipeline& pipe) const {
  StageFigures all = model.stage(pipe.stages, 0);
  double times = pipe.schedule.shape.microbatches;
  double compute = times * all.per_microbatch() + all.forward.at_last + all.backward.at_last;
  double messages = times * (all.forward.messages + all.backward.messages);
  double at_last = all.forward.beside_at_last + all.backward.beside_at_last;
  double beside = times * (all.forward.beside + all.backward.beside) + at_last;
  double slowing = beside - times * (all.forward.copies + all.backward.copies);
  const Efficiencies& efficiency = subject_.machine.efficiency();
  double least_lost = 1 - std::max(efficiency.near_overlap, efficiency.far_overlap);  // of a second beside messages
  double lost = steady() ? least_lost * std::max(0.0, slowing - 2 * messages) : 0;
  double alone = times * (all.least_forward() + all.least_backward()) + all.forward.at_last + all.backward.at_last;
  double lane = beside + all.forward.copies_at_last + all.backward.copies_at_last + all.update.beside;
  return std::max(std::max({compute + lost, alone, beside, times * all.host()}) + all.least_update(), lane);
}

double LayoutBounds::seconds_by_sums(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  // Figures that have weight gradients inside backward do not tell how much of it can be deferred.
  const bool drains = !pipe.defers_weights || model.block.weight.compute > 0;
  double longest = 0, before = 0, after = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double work = 0, weights = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      StageFigures part = model.stage(pipe.stages, stage_of(shape, pipe.schedule.placement, rank, chunk));
      work += shape.microbatches * least_per_microbatch(pipe.pairs, part);
      weights += shape.microbatches * part.least_weight();
    }
    // The last backward stands behind all others, of whichever chunk, but not behind deferred weight gradients.
    longest = std::max({longest, before + work, before + work - weights + after});
    StageFigures own = model.stage(pipe.stages, rank);
    before += least_before_next(pipe.pairs, model, own);
    if (drains) after += least_after(pipe.pairs, model, own);
  }
  return longest;
}

// Where a forward runs beside a backward, messages of one travel under the compute of the other: each kind of unit is
// walked by itself.
double LayoutBounds::seconds_with_pairs(const ModelFigures& model, const Pipeline& pipe,
                                        const PairFigures* pairs) const {
  const PipelineShape& shape = pipe.schedule.shape;
  std::vector<StageFigures> stages;
  for (int s = 0; s < shape.stages(); ++s) stages.push_back(model.stage(pipe.stages, s));
  auto stage_at = [&](int rank, const Action& action) {
    return static_cast<size_t>(stage_of(shape, pipe.schedule.placement, rank, action.chunk));
  };
  std::map<std::pair<std::string, std::vector<size_t>>, UnitTimes> known;
  auto times = [&](int rank, std::span<const Action> unit) {
    std::vector<size_t> at;
    for (const Action& action : unit) at.push_back(stage_at(rank, action));
    auto [found, fresh] = known.try_emplace({letters_of(unit), at});
    if (!fresh) return found->second;
    int blocks = pipe.stages.blocks[at.front()];
    double compute = 0;
    for (size_t i = 0; i < unit.size(); ++i) {
      const StageFigures& part = stages[at[i]];
      blocks = std::min(blocks, pipe.stages.blocks[at[i]]);
      const RegionWork& work = unit[i].region == RegionKind::forward    ? part.forward
                               : unit[i].region == RegionKind::backward ? part.backward
                                                                        : part.weight;
      compute += work.compute - work.messages;
    }
    UnitTimes out = pairs->of_blocks(found->first.first, blocks);
    out.seconds = std::max(out.seconds, compute);
    return found->second = out;
  };
  std::vector<double> ends(static_cast<size_t>(shape.ranks));
  if (pairs) ends = earliest_ends(pipe.schedule, times);
  double longest = 0, least_update = stages.front().least_update();
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const StageFigures all = model.rank(pipe.stages, rank);
    double messages = 0, beside = 0, host = shape.microbatches * all.host();
    for (const RegionWork* region : {&all.forward, &all.backward, &all.weight}) {
      messages += shape.microbatches * region->messages;
      beside += shape.microbatches * region->beside + region->beside_at_last;
    }
    // Messages travel one after the other.
    const double update = all.least_update();
    longest = std::max(longest, std::max({ends[static_cast<size_t>(rank)], messages, beside, host}) + update);
    least_update = std::min(least_update, update);
  }
  return std::max(longest, seconds_by_sums(model, pipe) + least_update);
}

double LayoutBounds::seconds_on_stages(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  Durations durations = uniform_durations(shape);
  std::vector<StageFigures> stages;
  for (int s = 0; s < shape.stages(); ++s) {
    const StageFigures& part = stages.emplace_back(model.stage(pipe.stages, s));
    auto at = static_cast<size_t>(s);
    // Of an end alone, which is what Programs of one and of two blocks leave of it, it may be less than nothing.
    durations.forward[at] = std::max(0.0, part.least_forward());
    durations.backward[at] = std::max(0.0, part.least_backward());
    durations.weight[at] = std::max(0.0, part.least_weight());
  }
  durations.message = model.message;
  TimedSchedule timed = simulate_schedule(pipe.schedule, durations);
  double longest = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const StageFigures all = model.rank(pipe.stages, rank);
    double beside = 0, at_last = 0, copies_at_last = 0, host = shape.microbatches * all.host();
    for (const RegionWork* work : {&all.forward, &all.backward, &all.weight}) {
      beside += shape.microbatches * work->beside + work->beside_at_last, at_last += work->beside_at_last;
      copies_at_last += work->copies_at_last;
    }
    const auto& actions = timed.ranks[static_cast<size_t>(rank)];
    // Messages for the last microbatch only cannot leave before its backward has begun.
    auto last = std::find_if(actions.begin(), actions.end(), [&](const TimedAction& t) {
      return t.action.region != RegionKind::forward && t.action.microbatch == shape.microbatches - 1;
    });
    double end = std::max({actions.back().end, beside, last->start + at_last, host});
    longest = std::max({longest, end + all.least_update(), beside + copies_at_last + all.update.beside});
  }
  return longest;
}

ModelFigures LayoutBounds::coarse_figures(const LayoutChoice& choice) {
  // Two data-parallel ranks (of those among which experts are divided: two such groups) compute as many do. What ZeRO
  // and deferred weight gradients add to that, and what the latter hold, is left to the tight bound.
  LayoutChoice alike = choice;
  alike.mesh.zero = alike.mesh.zero_ranks = 0;
  alike.schedule = ScheduleKind::one_f_one_b, alike.chunks = 1;
  alike.mesh.dp = std::min(choice.mesh.dp, 2 * expert_mesh_of(choice.mesh).dp);
  ModelFigures model = figures({.choice = alike,
                                .runs = std::min(kSeveral, microbatches(choice)),
                                .folds = find_schedule(choice.schedule)->placement == StagePlacement::v});
  // As many more or fewer ranks share as the choice has.
  const double more = static_cast<double>(choice.shards()) / static_cast<double>(alike.shards());
  for (StageFigures* part : model.all_parts()) {
    OffloadedBytes& away = part->offloaded;
    if (choice.mesh.zero >= 1) {
      part->optimizer = part->optimizer_shards / more;
      away.optimizer = away.optimizer_shards / more, away.nvme = away.nvme_shards / more;
    }
    if (choice.mesh.zero >= 2) part->gradients = part->gradient_shards / more;
    if (choice.mesh.zero == 3) part->weights = part->weight_shards / more;
    // Shards of gradients and weights that pass are left out.
    if (choice.mesh.zero >= 2) part->passing = choice.mesh.pp == 1 ? part->forward_to_backward : 0;
    away.for_update = 0;
    part->update = {};
    // Copies between memory spaces, which every rank makes, remain. Collectives on the comm lane are left out, as are
    // weights that ZeRO sends as shards.
    for (RegionWork* work : {&part->forward, &part->backward, &part->weight}) {
      work->beside = work->copies;
      work->beside_at_last = work->copies_at_last = work->at_last = 0;
    }
  }
  if (choice.mesh.zero >= 2) model.first_scratch = model.last_scratch = 0;
  return model;
}

// Neither the microbatch, nor what is computed again, nor the order of work changes what stays from step to step.
LeastCost LayoutBounds::persistent_bytes(const LayoutChoice& choice) {
  LayoutChoice plain = choice;
  if (microbatches(choice) > 1) plain.microbatch = 1;  // gradients of a single microbatch do not stay
  plain.recompute = RecomputeMode::full;
  plain.mesh.sequence_parallel = false;
  const ModelFigures model = coarse_figures(plain);
  const StageLayout stages = stages_of(choice);
  LeastCost most;
  for (int rank = 0; rank < stages.shape.ranks; ++rank) {
    const StageFigures all = model.rank(stages, rank);
    most.bytes = std::max(most.bytes, all.persistent());
    most.host_bytes = std::max(most.host_bytes, all.offloaded.weights + all.offloaded.optimizer);
    most.nvme_bytes = std::max(most.nvme_bytes, all.offloaded.nvme);
  }
  return {.bytes = kSafety * most.bytes + outside_arena(),
          .host_bytes = kSafety * most.host_bytes,
          .nvme_bytes = kSafety * most.nvme_bytes};
}

// By the Programs of one sequence at once: what is held grows with the number of sequences.
double LayoutBounds::bytes_by_one_sequence(const LayoutChoice& choice) {
  LayoutChoice one = choice;
  one.microbatch = 1;
  ModelFigures model = coarse_figures(one);
  for (StageFigures* part : model.all_parts()) {
    part->forward_to_backward *= static_cast<double>(choice.microbatch);
    part->offloaded.held *= static_cast<double>(choice.microbatch);
  }
  if (choice.mesh.pp == 1) {
    model.block.passing *= static_cast<double>(choice.microbatch);
    model.first_end.passing = -model.block.passing;
  }
  model.first_scratch = model.last_scratch = 0;
  return bytes_of(model, pipeline(choice));
}

LeastCost LayoutBounds::coarse_bound(const LayoutChoice& choice) {
  const Machine& machine = subject_.machine;
  const double there = machine.device.memory_bytes;
  const LeastCost stays = persistent_bytes(choice);
  if (stays.bytes > there || stays.host_bytes > machine.host_bytes_of(choice.devices()) ||
      stays.nvme_bytes > machine.nvme_bytes_of(choice.devices()))
    return stays;
  bool several = microbatches(choice) > 1;
  if (choice.microbatch > 1 && several)
    if (double bytes = bytes_by_one_sequence(choice); bytes > there) return {.bytes = bytes};
  ModelFigures model = coarse_figures(choice);
  const Pipeline& pipe = pipeline(choice);
  double seconds = std::max(seconds_by_sums(model, pipe), seconds_beside(model, pipe));
  return cost_of(slowest(choice) * seconds, model, pipe);
}

// Messages beside compute travel one after the other.
double LayoutBounds::seconds_beside(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  double longest = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const StageFigures all = model.rank(pipe.stages, rank);
    double beside = 0;
    for (const RegionWork* work : {&all.forward, &all.backward, &all.weight})
      beside += shape.microbatches * work->beside + work->beside_at_last;
    longest = std::max(longest, beside);
  }
  return longest;
}

// Shards of weights and gradients are as large whatever a microbatch is, whenever weight gradients are computed, and
// whatever is computed again: layouts that differ in these alone share the Programs of the one that holds least.
LeastCost LayoutBounds::sent_bound(const LayoutChoice& choice) {
  LayoutChoice plain = choice;
  plain.microbatch = 1, plain.recompute = RecomputeMode::full, plain.schedule = ScheduleKind::one_f_one_b,
  plain.chunks = 1;
  const Pipeline& pipe = pipeline(choice);
  const ModelFigures& model =
      figures({.choice = plain, .runs = std::min(kSeveral, microbatches(choice)), .folds = pipe.stages.folds()});
  return cost_of(slowest(choice) * seconds_beside(model, pipe), model, pipe);
}

LeastCost LayoutBounds::tight_bound(const LayoutChoice& choice, Closeness close) {
  const Pipeline& pipe = pipeline(choice);
  const ModelFigures& model =
      figures({.choice = choice, .runs = std::min(kSeveral, microbatches(choice)), .folds = pipe.stages.folds()});
  const PairFigures* pairs = pipe.pairs && close == Closeness::walked ? &pair_figures(choice) : nullptr;
  double seconds = pipe.pairs            ? seconds_with_pairs(model, pipe, pairs)
                   : choice.mesh.pp == 1 ? seconds_on_one_stage(model, pipe)
                                         : seconds_on_stages(model, pipe);
  return cost_of(slowest(choice) * seconds, model, pipe);
}

LeastCost LayoutBounds::bound(const LayoutChoice& choice, Closeness close) {
  if (sends_activations(subject_) && !may_send(blocks(static_cast<int>(choice.stages())))) return nowhere();
  if (close == Closeness::coarse) return coarse_bound(choice);
  return close == Closeness::sent ? sent_bound(choice) : tight_bound(choice, close);
}

}  // namespace sextant
