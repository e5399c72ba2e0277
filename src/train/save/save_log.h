// SaveLog: what became of checkpoints that were written in the background, as lines and events.
#pragma once

#include "comm/host_group.h"
#include "train/monitor.h"
#include "train/save/saver.h"

namespace sextant {

class SaveLog {
 public:
  SaveLog(Saver& saver, const HostGroup& group) : saver_(saver), group_(group) {}

  RunActions take();  // since the last call
  // The newest checkpoint that stands needs no event: the run goes on from it.
  void begin() { recorded_ = saver_.newest().step; }

 private:
  Saver& saver_;
  const HostGroup& group_;
  int64_t recorded_ = -1;  // the newest with an event
};

}  // namespace sextant
