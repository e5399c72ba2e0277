// EventTail: the events that others append to a run's events.jsonl from now on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "events/run_event.h"

namespace sextant {

class EventTail {
 public:
  explicit EventTail(const std::filesystem::path& out);

  std::vector<RunEvent> take();  // those since the last call, whole lines only

 private:
  std::filesystem::path file_;
  int64_t offset_ = 0;
};

}  // namespace sextant
