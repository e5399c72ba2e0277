#include "passes/offload_activations.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/lane.h"
#include "passes/one_block_ahead.h"
#include "passes/space_copies.h"

namespace sextant {

namespace {

class SavedByBlock {
 public:
  SavedByBlock(Program& program, Lanes lanes) : program_(program), copies_(program, lanes) {}

  void run() {
    for (size_t r = 0; r < program_.regions.size(); ++r) {
      if (program_.regions[r].kind != RegionKind::forward) continue;
      const size_t ops = program_.regions[r].ops.size();
      for (size_t i = 0; i < ops; ++i) {
        const Op& op = program_.regions[r].ops[i];
        if (op.block < 0 || once_per_step(op) || !begins_second_block(r, i)) continue;
        const std::vector<ValueId> made = op.outputs;
        for (ValueId id : made)
          if (program_[id].kind == ValueKind::activation) keep_on_host(id, {static_cast<int>(r), static_cast<int>(i)});
      }
    }
    copies_.insert();
  }

 private:
  // Whether an op of the compute lane behind op `at` stands two blocks on.
  bool begins_second_block(size_t region, size_t at) const {
    const std::vector<Op>& ops = program_.regions[region].ops;
    int turns = 0, block = ops[at].block;
    for (size_t i = at + 1; i < ops.size(); ++i) {
      if (on_comm_lane(ops[i]) || ops[i].block == block) continue;
      block = ops[i].block;
      if (++turns == 2) return true;
    }
    return false;
  }

  // The first op of another region that reads the value.
  std::optional<OpPosition> first_use_elsewhere(ValueId id, int home) const {
    for (size_t r = 0; r < program_.regions.size(); ++r) {
      const std::vector<Op>& ops = program_.regions[r].ops;
      for (size_t i = 0; i < ops.size() && static_cast<int>(r) != home; ++i)
        if (std::ranges::count(ops[i].inputs, id) > 0) return OpPosition{static_cast<int>(r), static_cast<int>(i)};
    }
    return std::nullopt;
  }

  void keep_on_host(ValueId id, OpPosition made) {
    std::optional<OpPosition> use = first_use_elsewhere(id, made.region);
    if (!use) return;
    ValueId host = copies_.twin(id, MemorySpace::host), back = copies_.twin(id, MemorySpace::device);
    copies_.behind(made, copies_.make(id, host, Phase::forward));
    const std::vector<Op>& ops = program_.regions[static_cast<size_t>(use->region)].ops;
    auto ahead = static_cast<int>(one_block_ahead(ops, static_cast<size_t>(use->op)));
    copies_.before({use->region, ahead}, copies_.make(host, back, Phase::input_gradient));
    for (size_t r = 0; r < program_.regions.size(); ++r)
      if (static_cast<int>(r) != made.region)
        for (Op& op : program_.regions[r].ops) std::ranges::replace(op.inputs, id, back);
  }

  Program& program_;
  SpaceCopies copies_;
};

}  // namespace

void offload_activations(Program& program, Lanes lanes) {
  SavedByBlock(program, lanes).run();
}

}  // namespace sextant
