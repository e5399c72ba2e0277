#include "supervise/event_tail.h"

#include <fstream>

namespace sextant {

EventTail::EventTail(const std::filesystem::path& out) : file_(out / kEventsFile) {
  std::error_code error;
  auto size = std::filesystem::file_size(file_, error);
  if (!error) offset_ = static_cast<int64_t>(size);
}

std::vector<RunEvent> EventTail::take() {
  std::vector<RunEvent> events;
  std::ifstream file(file_, std::ios::binary);
  if (!file.seekg(offset_)) return events;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    offset_ += static_cast<int64_t>(line.size()) + 1;
    if (std::optional<RunEvent> event = parse_event(line)) events.push_back(std::move(*event));
  }
  return events;
}

}  // namespace sextant
