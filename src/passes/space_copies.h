// SpaceCopies: copies between the spaces, gathered while a Program is looked at and inserted at once.
#pragma once

#include <map>
#include <vector>

#include "ir/program.h"
#include "passes/gradient_history.h"
#include "passes/overlap.h"

namespace sextant {

class SpaceCopies {
 public:
  SpaceCopies(Program& program, Lanes lanes) : program_(program), lanes_(lanes) {}

  // A value like `id` in the space, which lives within a step.
  ValueId twin(ValueId id, MemorySpace space);
  // The op that copies; both values must be in their spaces. On the comm lane where lanes are on.
  Op make(ValueId from, ValueId to, Phase phase) const;

  // Where it goes, by the positions that ops have now.
  void before(OpPosition at, Op copy);
  void behind(OpPosition at, Op copy);
  void once_behind(OpPosition at, Op copy);  // for the last microbatch only

  void insert();

 private:
  const Op& op_at(OpPosition at) const {
    return program_.regions[static_cast<size_t>(at.region)].ops[static_cast<size_t>(at.op)];
  }

  Program& program_;
  Lanes lanes_;
  struct Around {
    std::vector<Op> before, behind;
  };
  std::map<std::pair<int, int>, Around> added_;  // by region and op
};

}  // namespace sextant
