// How text becomes pieces: stages one after the other, each cutting what the one before it left.
#pragma once

#include <memory>
#include <vector>

#include "text/split/split.h"

namespace sextant {

struct PretokenStage {
  bool prefix_space = false;                 // put a space before what does not begin with one
  std::shared_ptr<const Splitter> splitter;  // then cut; null cuts nothing
};

using PretokenStages = std::vector<PretokenStage>;

}  // namespace sextant
