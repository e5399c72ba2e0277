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

void add_work(RegionWork& sum, const RegionWork& other, double times) {
  for (double RegionWork::*part : {&RegionWork::compute, &RegionWork::messages, &RegionWork::beside,
                                   &RegionWork::at_last, &RegionWork::beside_at_last, &RegionWork::host})
    sum.*part += times * (other.*part);
}

// Which regions touch what lies in each buffer.
struct Touched {
  bool forward = false, backward = false, weight = false, update = false;
};

std::vector<Touched> touched_buffers(const Program& program) {
  std::vector<Touched> touched(program.buffers.size());
  for (const Region& region : program.regions) {
    for (const Op& op : region.ops) {
      for (const auto* ids : {&op.inputs, &op.outputs}) {
        for (ValueId id : *ids) {
          if (program[id].buffer < 0) continue;
          Touched& at = touched[static_cast<size_t>(program[id].buffer)];
          at.forward = at.forward || region.kind == RegionKind::forward;
          at.backward = at.backward || region.kind == RegionKind::backward;
          at.weight = at.weight || region.kind == RegionKind::weight;
          at.update = at.update || region.kind == RegionKind::update;
        }
      }
    }
  }
  return touched;
}

// Adds what a microbatch holds between regions; returns what all that are held hold.
double add_held(const Program& program, StageFigures& out) {
  std::vector<Touched> touched = touched_buffers(program);
  double all = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != BufferClass::saved || buffer.space != MemorySpace::device) continue;
    const Touched& at = touched[i];
    double* window = &out.passing;  // reduced gradients on their way to the update are there once
    if (at.forward)
      window = at.weight ? &out.forward_to_weight : &out.forward_to_backward;
    else if (!at.update)
      window = &out.backward_to_weight;
    *window += static_cast<double>(buffer.bytes);
    all += static_cast<double>(buffer.total_bytes());
  }
  return all;
}

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

// Of a microbatch that is neither the first nor the last.
constexpr int kAnyMicrobatch = -1;

// The region by itself; what it sends arrives so long after its end.
double walk_alone(RankWalk& walk, RegionWork& work, RegionKind kind) {
  Action action{.region = kind, .microbatch = kAnyMicrobatch};
  UnitAlone alone = walk.alone({&action, 1});
  std::optional<double> arrives;
  for (const UnitAlone::StageMessage& message : alone.messages)
    if (message.kind == Collective::send)
      arrives = std::min(arrives.value_or(message.arrives - alone.seconds), message.arrives - alone.seconds);
  if (arrives) work.arrives_after = *arrives;
  return alone.seconds;
}

// Among how many ranks ZeRO divides what lies in each buffer, at most.
std::vector<double> zero_ranks_of(const Program& program) {
  std::vector<double> ranks(program.buffers.size(), 1);
  for (const Value& value : program.values) {
    const Value* parameter = value.kind == ValueKind::parameter ? &value : nullptr;
    if (!parameter && value.of != kNoValue) parameter = &program[value.of];
    if (!parameter || value.buffer < 0) continue;
    double among = 1;
    for (int axis : parameter->data_axes)
      if (program.mesh.def(axis).zero_shards) among *= program.mesh.size(axis);
    double& most = ranks[static_cast<size_t>(value.buffer)];
    most = std::max(most, among);
  }
  return ranks;
}

void add_persistent(const Program& program, StageFigures& out) {
  const std::vector<double> ranks = zero_ranks_of(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.space != MemorySpace::device) continue;
    const double bytes = static_cast<double>(buffer.total_bytes()), shard = bytes / ranks[i];
    if (buffer.kind == BufferClass::weights) out.weights += bytes, out.weight_shards += shard;
    if (buffer.kind == BufferClass::gradients) out.gradients += bytes, out.gradient_shards += shard;
    if (buffer.kind == BufferClass::optimizer) out.optimizer += bytes, out.optimizer_shards += shard;
  }
}

StageFigures figures_of(const Program& program, Pricer& pricer) {
  StageFigures out;
  RankWalk walk(program, pricer, {});
  for (const Region& region : program.regions) {
    RegionWork work = region_work(program, region, pricer);
    switch (region.kind) {
      case RegionKind::forward:
        out.forward_alone = walk_alone(walk, work, region.kind), out.forward = work;
        break;
      case RegionKind::backward:
        out.backward_alone = walk_alone(walk, work, region.kind), out.backward = work;
        break;
      case RegionKind::weight:
        out.weight_alone = walk_alone(walk, work, region.kind), out.weight = work;
        break;
      case RegionKind::update:
        out.update = work;
        break;
    }
  }
  add_persistent(program, out);
  add_held(program, out);
  return out;
}

double persistent(const StageFigures& figures) {
  return figures.weights + figures.gradients + figures.optimizer;
}

// What a stage has beside what is held and what stays.
double scratch_of(const Program& program, const StageFigures& figures) {
  double fullest = 0;
  for (const MemoryMoment& moment : memory_moments(program))
    fullest = std::max(fullest, static_cast<double>(moment.parts.total()));
  StageFigures held;
  return std::max(0.0, fullest - persistent(figures) - add_held(program, held));
}

StageFigures difference(StageFigures a, const StageFigures& b) {
  return a.add(b, -1);
}

bool defers_weights(const LayoutChoice& choice) {
  const ScheduleDef* schedule = find_schedule(choice.schedule);
  return schedule && schedule->defers_weights;
}

// What a microbatch takes of a rank at least: where a forward runs beside a backward, messages may travel under
// compute.
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

StageFigures& StageFigures::add(const StageFigures& other, double times) {
  for (RegionWork StageFigures::*region :
       {&StageFigures::forward, &StageFigures::backward, &StageFigures::weight, &StageFigures::update})
    add_work(this->*region, other.*region, times);
  for (double StageFigures::*part :
       {&StageFigures::weights, &StageFigures::gradients, &StageFigures::optimizer, &StageFigures::weight_shards,
        &StageFigures::gradient_shards, &StageFigures::optimizer_shards, &StageFigures::forward_to_backward,
        &StageFigures::forward_to_weight, &StageFigures::backward_to_weight, &StageFigures::passing,
        &StageFigures::forward_alone, &StageFigures::backward_alone, &StageFigures::weight_alone})
    this->*part += times * (other.*part);
  return *this;
}

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

const ModelFigures& LayoutBounds::figures(const LayoutChoice& choice, int64_t runs) {
  LayoutChoice c = choice;
  c.mesh.pp = std::min<int64_t>(c.mesh.pp, 2), c.chunks = 1;
  c.schedule = defers_weights(choice) ? "zb-h1" : "1f1b";
  std::string key = fmt::format("{} {}", overrides_text(c), runs);
  return once(figures_, key, [&] { return lower_figures(choice, runs); });
}

const std::vector<int>& LayoutBounds::blocks(int stages) {
  return once(blocks_, std::to_string(stages), [&] { return balanced_blocks(whole_, stages); });
}

const LayoutBounds::Pipeline& LayoutBounds::pipeline(const LayoutChoice& choice) {
  std::string key = fmt::format("{} {} {} {}", choice.schedule, choice.mesh.pp, choice.chunks, microbatches(choice));
  return once(pipelines_, key, [&] {
    PipelineShape shape{static_cast<int>(choice.mesh.pp), static_cast<int>(choice.chunks),
                        static_cast<int>(microbatches(choice))};
    Pipeline pipe{.schedule = make_schedule(choice.schedule, shape), .blocks = blocks(shape.stages()), .held = {}};
    pipe.pairs = has_pairs(pipe.schedule);
    pipe.defers_weights = pipe.schedule.defers_weights();
    for (int rank = 0; rank < shape.ranks; ++rank) {
      std::vector<InFlight>& held = pipe.held.emplace_back();
      std::map<int, double> layers;
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        held.push_back(in_flight(pipe.schedule, rank, chunk));
        layers[chunk] = pipe.blocks[static_cast<size_t>(stage_of(shape, pipe.schedule.placement, rank, chunk))];
      }
      pipe.held_at_once.push_back(
          estimates_memory() ? kept_layers(pipe.schedule.ranks[static_cast<size_t>(rank)], layers).share_at_once() : 1);
    }
    return pipe;
  });
}

// Gradients and optimizer state as other software keeps them, and what it has beside our buffers.
void LayoutBounds::add_foreign(ModelFigures& model, const RunConfig& config, const std::vector<Program>& one,
                               const std::vector<Program>& two) const {
  if (!estimates_memory()) return;
  for (StageFigures* part : {&model.block, &model.first_end, &model.last_end}) {
    const double gradients = foreign_gradients(subject_.profile), optimizer = foreign_optimizer(subject_.profile);
    part->gradients *= gradients, part->gradient_shards *= gradients;
    part->optimizer *= optimizer, part->optimizer_shards *= optimizer;
  }
  auto extra = [&](const Program& program) { return foreign_extra(program, config, subject_.profile); };
  const bool piped = one.size() > 1;
  double saved = extra(two.front()).saved - extra(one.front()).saved;
  model.block.forward_to_backward += saved;
  if (!piped) model.block.passing += saved;
  (piped ? model.last_end : model.first_end).passing += extra(one.back()).working;
}

bool LayoutBounds::estimates_memory() const {
  return memory_basis(&subject_.machine, &subject_.profile, subject_.spec.experts.has_value()) == MemoryBasis::estimate;
}

double LayoutBounds::outside_arena() const {
  return subject_.machine.context_bytes + (estimates_memory() ? subject_.profile.buffer_bytes : 0);
}

// Stages of one and of two blocks; along a pipeline also a last stage of one. Where weights are gathered one block
// ahead, only from the third block on do blocks take the same: then of two and of three.
ModelFigures LayoutBounds::lower_figures(const LayoutChoice& choice, int64_t runs) const {
  bool piped = choice.mesh.pp > 1;
  LayoutChoice few = choice;
  few.mesh.pp = piped ? 2 : 1, few.chunks = 1, few.schedule = defers_weights(choice) ? "zb-h1" : "1f1b";
  RunConfig config = with_choice(subject_.run, few);
  config.batch.sequences = choice.microbatch * choice.mesh.dp * runs;
  auto pricer = [&] {
    return Pricer(subject_.machine, subject_.machine.efficiency(), subject_.profile, subject_.expert_imbalance);
  };
  auto lowered = [&](int64_t first_blocks) {
    ModelSpec spec = subject_.spec;
    spec.layers = first_blocks + (piped ? 1 : 0);
    if (piped) config.pipeline.layers = fmt::format("{},1", first_blocks);
    return lower_run(config, spec, target_, Checks::none).programs.train;
  };
  const bool gathers = choice.mesh.zero == 3;
  const int fewest = gathers && !piped && subject_.spec.layers > 2 ? 2 : 1;
  std::vector<Program> one = lowered(fewest), two = lowered(fewest + 1);
  Pricer of_one = pricer(), of_two = pricer();
  StageFigures first = figures_of(one.front(), of_one), longer = figures_of(two.front(), of_two);
  ModelFigures model;
  model.block = difference(longer, first);
  if (!piped) {
    model.block.passing = model.block.forward_to_backward;
    first.passing =
        std::max(0.0, fullest_with_all_blocks(two.front(), fewest) - persistent(longer)) - model.block.passing;
  }
  model.first_end = first;
  model.first_end.add(model.block, -fewest);
  if (!piped) {
    add_foreign(model, config, one, two);
    return model;
  }
  StageFigures last = figures_of(one.back(), of_one);
  model.last_end = difference(last, model.block);
  // A single microbatch has given back what it held when its gradients are on their way.
  if (runs == 1) model.block.passing = model.first_end.passing = model.last_end.passing = 0;
  if (gathers)
    for (StageFigures* part : {&model.block, &model.first_end, &model.last_end})
      part->forward_alone = part->backward_alone = part->weight_alone = 0;
  model.message = std::min(first.forward.arrives_after, last.backward.arrives_after);
  model.first_scratch = std::min(scratch_of(one.front(), first), scratch_of(two.front(), longer));
  // With gradients in shards, those of the head and of the one block are on their way at the same time.
  if (choice.mesh.zero < 2) model.last_scratch = scratch_of(one.back(), last);
  add_foreign(model, config, one, two);
  return model;
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
    // Weights that are gathered one block ahead fill the lane at first: a second block takes longer than further ones.
    return choice.mesh.zero == 3 ? PairFigures{} : lower_pairs(choice);
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

StageFigures LayoutBounds::stage(const ModelFigures& model, const std::vector<int>& blocks, int stage) const {
  StageFigures out;
  out.add(model.block, blocks[static_cast<size_t>(stage)]);
  if (stage == 0) out.add(model.first_end, 1);
  if (static_cast<size_t>(stage) + 1 == blocks.size()) out.add(model.last_end, 1);
  return out;
}

double LayoutBounds::bytes_of(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  double most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double bytes = 0, scratch = 0;
    const double at_once = pipe.held_at_once[static_cast<size_t>(rank)];
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      int at = stage_of(shape, pipe.schedule.placement, rank, chunk);
      StageFigures part = stage(model, pipe.blocks, at);
      bytes += persistent(part) + part.passing;
      const InFlight& held = pipe.held[static_cast<size_t>(rank)][static_cast<size_t>(chunk)];
      if (shape.ranks == 1) {  // one microbatch is counted where the most is held; beside it are the others'
        bytes += model.block.forward_to_backward * (pipe.blocks.front() - 1) * (held.forward_to_backward - 1);
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

// Nobody is waited for: compute, what waits for messages at its end, and the pace lost beside those that travel.
double LayoutBounds::seconds_on_one_stage(const ModelFigures& model, const Pipeline& pipe) const {
  StageFigures all = stage(model, pipe.blocks, 0);
  double times = pipe.schedule.shape.microbatches;
  double compute = times * all.per_microbatch() + all.forward.at_last + all.backward.at_last;
  double messages = times * (all.forward.messages + all.backward.messages);
  double beside =
      times * (all.forward.beside + all.backward.beside) + all.forward.beside_at_last + all.backward.beside_at_last;
  const Efficiencies& efficiency = subject_.machine.efficiency();
  double least_lost = 1 - std::max(efficiency.near_overlap, efficiency.far_overlap);  // of a second beside messages
  double lost = steady() ? least_lost * std::max(0.0, beside - 2 * messages) : 0;
  double alone = times * (all.least_forward() + all.least_backward()) + all.forward.at_last + all.backward.at_last;
  return std::max({compute + lost, alone, beside, times * all.host()}) + all.update.compute;
}

double LayoutBounds::seconds_by_sums(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  // Figures that have weight gradients inside backward do not tell how much of it can be deferred.
  const bool drains = !pipe.defers_weights || model.block.weight.compute > 0;
  double longest = 0, before = 0, after = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double work = 0, weights = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      StageFigures part = stage(model, pipe.blocks, stage_of(shape, pipe.schedule.placement, rank, chunk));
      work += shape.microbatches * least_per_microbatch(pipe.pairs, part);
      weights += shape.microbatches * part.least_weight();
    }
    // The last backward stands behind all others, of whichever chunk, but not behind deferred weight gradients.
    longest = std::max({longest, before + work, before + work - weights + after});
    StageFigures own = stage(model, pipe.blocks, rank);
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
  for (int s = 0; s < shape.stages(); ++s) stages.push_back(stage(model, pipe.blocks, s));
  auto stage_at = [&](int rank, const Action& action) {
    return static_cast<size_t>(stage_of(shape, pipe.schedule.placement, rank, action.chunk));
  };
  std::map<std::pair<std::string, std::vector<size_t>>, UnitTimes> known;
  auto times = [&](int rank, std::span<const Action> unit) {
    std::vector<size_t> at;
    for (const Action& action : unit) at.push_back(stage_at(rank, action));
    auto [found, fresh] = known.try_emplace({letters_of(unit), at});
    if (!fresh) return found->second;
    int blocks = pipe.blocks[at.front()];
    double compute = 0;
    for (size_t i = 0; i < unit.size(); ++i) {
      const StageFigures& part = stages[at[i]];
      blocks = std::min(blocks, pipe.blocks[at[i]]);
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
  double longest = 0, least_update = stages.front().update.compute;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double messages = 0, beside = 0, update = 0, host = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const StageFigures& part = stages[static_cast<size_t>(stage_of(shape, pipe.schedule.placement, rank, chunk))];
      for (const RegionWork* region : {&part.forward, &part.backward, &part.weight}) {
        messages += shape.microbatches * region->messages;
        beside += shape.microbatches * region->beside + region->beside_at_last;
      }
      host += shape.microbatches * part.host();
      update += part.update.compute;
    }
    // Messages travel one after the other.
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
    const StageFigures& part = stages.emplace_back(stage(model, pipe.blocks, s));
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
    double update = 0, beside = 0, at_last = 0, host = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const StageFigures& part = stages[static_cast<size_t>(stage_of(shape, pipe.schedule.placement, rank, chunk))];
      update += part.update.compute, host += shape.microbatches * part.host();
      for (const RegionWork* work : {&part.forward, &part.backward, &part.weight})
        beside += shape.microbatches * work->beside + work->beside_at_last, at_last += work->beside_at_last;
    }
    const auto& actions = timed.ranks[static_cast<size_t>(rank)];
    // What travels for the last microbatch only cannot leave before that has begun to run backward.
    auto last = std::find_if(actions.begin(), actions.end(), [&](const TimedAction& t) {
      return t.action.region != RegionKind::forward && t.action.microbatch == shape.microbatches - 1;
    });
    double end = std::max({actions.back().end, beside, last->start + at_last, host});
    longest = std::max(longest, end + update);
  }
  return longest;
}

ModelFigures LayoutBounds::coarse_figures(const LayoutChoice& choice) {
  // Two data-parallel ranks (of those among which experts are divided: two such groups) compute as many do. What ZeRO
  // and deferred weight gradients add to that, and what the latter hold, is left to the tight bound.
  LayoutChoice alike = choice;
  alike.mesh.zero = alike.mesh.zero_ranks = 0;
  alike.schedule = "1f1b", alike.chunks = 1;
  alike.mesh.dp = std::min(choice.mesh.dp, 2 * expert_mesh_of(choice.mesh).dp);
  ModelFigures model = figures(alike, std::min(kSeveral, microbatches(choice)));
  // As many more or fewer ranks share as the choice has.
  const double more = static_cast<double>(choice.shards()) / static_cast<double>(alike.shards());
  for (StageFigures* part : {&model.block, &model.first_end, &model.last_end}) {
    if (choice.mesh.zero >= 1) part->optimizer = part->optimizer_shards / more;
    if (choice.mesh.zero >= 2) part->gradients = part->gradient_shards / more;
    if (choice.mesh.zero == 3) part->weights = part->weight_shards / more;
    // Shards of gradients and weights that pass are left out.
    if (choice.mesh.zero >= 2) part->passing = choice.mesh.pp == 1 ? part->forward_to_backward : 0;
    part->update = {};
    for (RegionWork* work : {&part->forward, &part->backward, &part->weight})
      work->beside = work->beside_at_last = work->at_last = 0;
  }
  if (choice.mesh.zero >= 2) model.first_scratch = model.last_scratch = 0;
  return model;
}

// Neither the microbatch, nor what is computed again, nor the order of work changes what stays from step to step.
double LayoutBounds::persistent_bytes(const LayoutChoice& choice) {
  LayoutChoice plain = choice;
  if (microbatches(choice) > 1) plain.microbatch = 1;  // gradients of a single microbatch do not stay
  plain.recompute = "full", plain.schedule = "1f1b", plain.chunks = 1;
  plain.mesh.sequence_parallel = false;
  ModelFigures model = coarse_figures(plain);
  PipelineShape shape{static_cast<int>(choice.mesh.pp), static_cast<int>(choice.chunks), 1};
  const ScheduleDef* schedule = find_schedule(choice.schedule);
  const std::vector<int>& counts = blocks(shape.stages());
  double most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double bytes = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk)
      bytes += persistent(stage(model, counts, stage_of(shape, schedule->placement, rank, chunk)));
    most = std::max(most, bytes);
  }
  return kSafety * most + outside_arena();
}

// By the Programs of one sequence at once: what is held grows with the number of sequences.
double LayoutBounds::bytes_by_one_sequence(const LayoutChoice& choice) {
  LayoutChoice one = choice;
  one.microbatch = 1;
  ModelFigures model = coarse_figures(one);
  for (StageFigures* part : {&model.block, &model.first_end, &model.last_end})
    part->forward_to_backward *= static_cast<double>(choice.microbatch);
  if (choice.mesh.pp == 1) {
    model.block.passing *= static_cast<double>(choice.microbatch);
    model.first_end.passing = -model.block.passing;
  }
  model.first_scratch = model.last_scratch = 0;
  return bytes_of(model, pipeline(choice));
}

LeastCost LayoutBounds::coarse_bound(const LayoutChoice& choice) {
  const double there = subject_.machine.device.memory_bytes;
  if (double bytes = persistent_bytes(choice); bytes > there) return {.bytes = bytes};
  bool several = microbatches(choice) > 1;
  if (choice.microbatch > 1 && several)
    if (double bytes = bytes_by_one_sequence(choice); bytes > there) return {.bytes = bytes};
  ModelFigures model = coarse_figures(choice);
  const Pipeline& pipe = pipeline(choice);
  LeastCost cost{.seconds = seconds_by_sums(model, pipe), .bytes = bytes_of(model, pipe)};
  cost.seconds *= kSafety * slowest_of(subject_.machine.efficiency(), choice.devices());
  return cost;
}

// Messages beside compute travel one after the other.
double LayoutBounds::seconds_beside(const ModelFigures& model, const Pipeline& pipe) const {
  const PipelineShape& shape = pipe.schedule.shape;
  double longest = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double beside = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      StageFigures part = stage(model, pipe.blocks, stage_of(shape, pipe.schedule.placement, rank, chunk));
      for (const RegionWork* work : {&part.forward, &part.backward, &part.weight})
        beside += shape.microbatches * work->beside + work->beside_at_last;
    }
    longest = std::max(longest, beside);
  }
  return longest;
}

// Shards of weights and gradients are as large whatever a microbatch is, whenever weight gradients are computed, and
// whatever is computed again: layouts that differ in these alone share the Programs of the one that holds least.
LeastCost LayoutBounds::sent_bound(const LayoutChoice& choice) {
  LayoutChoice plain = choice;
  plain.microbatch = 1, plain.recompute = "full", plain.schedule = "1f1b", plain.chunks = 1;
  const ModelFigures& model = figures(plain, std::min(kSeveral, microbatches(choice)));
  const Pipeline& pipe = pipeline(choice);
  double slowest = slowest_of(subject_.machine.efficiency(), choice.devices());
  return {.seconds = kSafety * slowest * seconds_beside(model, pipe), .bytes = bytes_of(model, pipe)};
}

LeastCost LayoutBounds::tight_bound(const LayoutChoice& choice, Closeness close) {
  const ModelFigures& model = figures(choice, std::min(kSeveral, microbatches(choice)));
  const Pipeline& pipe = pipeline(choice);
  const PairFigures* pairs = pipe.pairs && close == Closeness::walked ? &pair_figures(choice) : nullptr;
  double seconds = pipe.pairs            ? seconds_with_pairs(model, pipe, pairs)
                   : choice.mesh.pp == 1 ? seconds_on_one_stage(model, pipe)
                                         : seconds_on_stages(model, pipe);
  double slowest = slowest_of(subject_.machine.efficiency(), choice.devices());
  return {.seconds = kSafety * slowest * seconds, .bytes = bytes_of(model, pipe)};
}

LeastCost LayoutBounds::bound(const LayoutChoice& choice, Closeness close) {
  if (close == Closeness::coarse) return coarse_bound(choice);
  return close == Closeness::sent ? sent_bound(choice) : tight_bound(choice, close);
}

}  // namespace sextant
