#include "train/save/save_log.h"

#include <fmt/format.h>

namespace sextant {

RunActions SaveLog::take() {
  RunActions actions;
  for (std::string& line : saver_.take_notes()) actions.emplace_back(SayLine{std::move(line)});
  if (!group_.leads()) return actions;
  Checkpoint newest = saver_.newest();
  if (newest.step == recorded_ || newest.step < 0) return actions;
  recorded_ = newest.step;
  actions.emplace_back(RunEvent{.kind = EventKind::checkpoint,
                                .step = newest.step,
                                .text = fmt::format("checkpoint of step {}", newest.step),
                                .details = {{"checkpoint", newest.path.string()}}});
  return actions;
}

}  // namespace sextant
