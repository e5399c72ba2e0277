#include "passes/stream_weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "passes/one_block_ahead.h"
#include "passes/space_copies.h"

namespace sextant {

namespace {

// A matrix that has less than one part in so many of its block's bytes stays on the device: it would save little, and
// in forward the link is what a block waits for. (Llama 3.1 8B with 8,192 tokens on an H200: a block's forward
// takes 6.4 ms and its matrices 7.9 ms over PCIe 5.)
constexpr int64_t kSmallestShare = 10;

// By forward alone: evaluation, which has nothing else, must come to the same.
std::vector<ValueId> streamed_weights(const Program& program) {
  std::map<ValueId, std::set<int>> blocks;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (ValueId id : op.inputs)
        if (region.kind == RegionKind::forward && program[id].kind == ValueKind::parameter) blocks[id].insert(op.block);
  std::map<int, std::vector<ValueId>> matrices;  // by block
  for (const auto& [id, readers] : blocks)
    if (readers.size() == 1 && *readers.begin() >= 0 && program[id].is_trained() && program[id].shape.rank() >= 2)
      matrices[*readers.begin()].push_back(id);
  std::vector<ValueId> streamed;
  for (const auto& [block, ids] : matrices) {
    int64_t all = 0;
    for (ValueId id : ids) all += program[id].global_bytes().n;
    for (ValueId id : ids)
      if (kSmallestShare * program[id].global_bytes().n >= all) streamed.push_back(id);
  }
  return streamed;
}

Phase phase_of_copy(RegionKind kind) {
  if (kind == RegionKind::forward) return Phase::forward;
  return kind == RegionKind::weight ? Phase::weight_gradient : Phase::input_gradient;
}

class WeightStream {
 public:
  WeightStream(Program& program, Lanes lanes) : program_(program), copies_(program, lanes) {}

  void run() {
    for (ValueId id : streamed_weights(program_)) {
      program_.values[static_cast<size_t>(id)].space = MemorySpace::host;
      for (size_t r = 0; r < program_.regions.size(); ++r)
        if (program_.regions[r].kind != RegionKind::update) stream_in(r, id);
    }
    copies_.insert();
  }

 private:
  void stream_in(size_t r, ValueId id) {
    std::vector<Op>& ops = program_.regions[r].ops;
    std::vector<size_t> readers;
    for (size_t i = 0; i < ops.size(); ++i)
      if (std::ranges::count(ops[i].inputs, id) > 0) readers.push_back(i);
    if (readers.empty()) return;
    ValueId here = copies_.twin(id, MemorySpace::device);
    Op copy = copies_.make(id, here, phase_of_copy(program_.regions[r].kind));
    // A value that is read for one microbatch only (a weight that is made fp8) is copied for that one only.
    const RunsFor first = ops[readers.front()].runs_for;
    if (std::ranges::all_of(readers, [&](size_t i) { return ops[i].runs_for == first; })) copy.runs_for = first;
    for (size_t i : readers) std::ranges::replace(ops[i].inputs, id, here);
    copies_.before({static_cast<int>(r), static_cast<int>(one_block_ahead(ops, readers.front()))}, std::move(copy));
  }

  Program& program_;
  SpaceCopies copies_;
};

}  // namespace

void stream_weights(Program& program, Lanes lanes) {
  WeightStream(program, lanes).run();
}

}  // namespace sextant
