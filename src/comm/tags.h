// Tags of the different conversations between two ranks. Messages between pipeline stages count up from the last.
#pragma once

namespace sextant {

enum MessageTag : int {
  kCollectiveTag = 1,  // collectives of a Program
  kHostTag = 2,        // between steps: adding up, agreeing, waiting
  kCommLaneTag = 3,    // collectives of a Program that travel while it computes
  kSaveTag = 4,        // ranks that write a checkpoint together
  kLocalCopyTag = 5,   // copies of local checkpoints on their way to another rank
  kFirstStageTag = 16,
};

// Whether it is a thread beside the rank's own that waits for such messages: the rank itself goes on.
inline bool in_background(int tag) {
  return tag == kSaveTag;
}

}  // namespace sextant
