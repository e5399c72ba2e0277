// Tags of the different conversations between two ranks. Messages between pipeline stages count up from the last.
#pragma once

namespace sextant {

enum MessageTag : int {
  kCollectiveTag = 1,  // collectives of a Program
  kHostTag = 2,        // between steps: adding up, agreeing, waiting
  kFirstStageTag = 16,
};

}  // namespace sextant
