// Where the versions of an accumulated gradient are made: a sum over microbatches is finished by the last of them.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "ir/program.h"

namespace sextant {

struct OpPosition {
  int region = -1, op = -1;
};

class GradientHistory {
 public:
  explicit GradientHistory(const Program& program);  // which must outlive it, and not change

  // The op after which a gradient is finished, and looked at by whom else its region has, when one region makes all of
  // it; region -1 otherwise.
  OpPosition finished(ValueId gradient) const;
  // The op that makes a value; region -1 where none does.
  OpPosition made(ValueId id) const;

 private:
  ValueId first_version(ValueId id) const;
  std::optional<int> read_in_region(ValueId id, int region) const;  // by its last op that does

  const Program& program_;
  std::map<std::pair<ValueId, int>, int> read_;  // by value and region: the last op
  std::map<ValueId, OpPosition> made_;
  std::map<ValueId, ValueId> previous_;
};

}  // namespace sextant
