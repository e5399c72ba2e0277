#include "watch/kept_events.h"

#include <numeric>

namespace sextant {

void KeptEvents::add_line(std::string_view line) {
  std::optional<RunEvent> event = parse_event(line);
  if (!event) return;
  events_.push_back(std::move(*event));
  bytes_.push_back(line.size());
  sum_ += line.size();
  // By halves, so that a full list is not moved with every event.
  while (events_.size() > kMostEvents || (sum_ > kMostBytes && events_.size() > 1)) drop_first(events_.size() / 2);
}

void KeptEvents::drop_first(size_t count) {
  auto first = static_cast<std::ptrdiff_t>(count);
  sum_ -= std::accumulate(bytes_.begin(), bytes_.begin() + first, size_t{0});
  events_.erase(events_.begin(), events_.begin() + first);
  bytes_.erase(bytes_.begin(), bytes_.begin() + first);
}

}  // namespace sextant
