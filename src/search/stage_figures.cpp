#include "search/stage_figures.h"

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "exec/sim/rank_walk.h"
#include "plan/memory_moments.h"

namespace sextant {

namespace {

void add_work(RegionWork& sum, const RegionWork& other, double times) {
  for (double RegionWork::*part :
       {&RegionWork::compute, &RegionWork::messages, &RegionWork::beside, &RegionWork::copies, &RegionWork::at_last,
        &RegionWork::beside_at_last, &RegionWork::copies_at_last, &RegionWork::host})
    sum.*part += times * (other.*part);
}

// Which regions touch what lies in each buffer.
struct Touched {
  bool forward = false, backward = false, weight = false, update = false;
  bool before_update() const { return forward || backward || weight; }
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

void add_offloaded(const Program& program, const std::vector<double>& ranks, OffloadedBytes& out) {
  const std::vector<Touched> touched = touched_buffers(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    const double bytes = static_cast<double>(buffer.total_bytes()), shard = bytes / ranks[i];
    if (buffer.space == MemorySpace::nvme) out.nvme += bytes, out.nvme_shards += shard;
    if (buffer.space != MemorySpace::host) continue;
    if (buffer.kind == BufferClass::weights)
      out.weights += bytes;
    else if (buffer.kind == BufferClass::optimizer)
      out.optimizer += bytes, out.optimizer_shards += shard;
    else if (touched[i].update && touched[i].before_update())
      out.for_update += bytes;
    else if (buffer.kind == BufferClass::saved && touched[i].forward)
      out.held += static_cast<double>(buffer.bytes);
  }
}

// The region by itself; what it sends arrives so long after its end.
double walk_alone(RankWalk& walk, RegionWork& work, const Region& region) {
  Action action{.region = region.kind, .chunk = region.chunk, .microbatch = kAnyMicrobatch};
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

void add_persistent(const Program& program, const std::vector<double>& ranks, StageFigures& out) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.space != MemorySpace::device) continue;
    const double bytes = static_cast<double>(buffer.total_bytes()), shard = bytes / ranks[i];
    if (buffer.kind == BufferClass::weights) out.weights += bytes, out.weight_shards += shard;
    if (buffer.kind == BufferClass::gradients) out.gradients += bytes, out.gradient_shards += shard;
    if (buffer.kind == BufferClass::optimizer) out.optimizer += bytes, out.optimizer_shards += shard;
  }
}

}  // namespace

void OffloadedBytes::add(const OffloadedBytes& other, double times) {
  for (double OffloadedBytes::*part :
       {&OffloadedBytes::weights, &OffloadedBytes::optimizer, &OffloadedBytes::optimizer_shards, &OffloadedBytes::nvme,
        &OffloadedBytes::nvme_shards, &OffloadedBytes::held, &OffloadedBytes::for_update})
    this->*part += times * (other.*part);
}

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
  offloaded.add(other.offloaded, times);
  return *this;
}

StageFigures figures_of(const Program& program, Pricer& pricer) {
  StageFigures out;
  RankWalk walk(program, pricer, {});
  for (const Region& region : program.regions) {
    RegionWork work = region_work(program, region, pricer);
    if (region.kind == RegionKind::update) {
      out.update = work;
      continue;
    }
    auto [all, alone] = region.kind == RegionKind::forward    ? std::tie(out.forward, out.forward_alone)
                        : region.kind == RegionKind::backward ? std::tie(out.backward, out.backward_alone)
                                                              : std::tie(out.weight, out.weight_alone);
    alone += walk_alone(walk, work, region);
    add_work(all, work, 1);
    all.arrives_after = work.arrives_after;
  }
  const std::vector<double> ranks = zero_ranks_of(program);
  add_persistent(program, ranks, out);
  add_offloaded(program, ranks, out.offloaded);
  add_held(program, out);
  return out;
}

double scratch_of(const Program& program, const StageFigures& figures) {
  double fullest = 0;
  for (const MemoryMoment& moment : memory_moments(program))
    fullest = std::max(fullest, static_cast<double>(moment.parts.total()));
  StageFigures held;
  return std::max(0.0, fullest - figures.persistent() - add_held(program, held));
}

}  // namespace sextant
