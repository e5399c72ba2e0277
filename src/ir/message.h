// Message: what an op sends to other ranks, for whoever counts, prices or draws it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "mesh/collective.h"

namespace sextant {

struct Message {
  Collective kind = Collective::all_reduce;
  std::vector<std::string> axes = {};  // of the mesh, along which the ranks of the group lie
  std::vector<int64_t> stages = {};    // instead: coordinates on the pipeline axis
  Bytes bytes = {};                    // as share_sent counts them
  Bytes part = {};                     // as elements_sent counts them
  int64_t element_bytes = 1;

  // Between pipeline ranks: a message from one to another, or a sum over several.
  bool between_stages() const { return kind == Collective::send || kind == Collective::receive || !stages.empty(); }
};

}  // namespace sextant
