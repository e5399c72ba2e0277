// The events of a run that are kept in memory: the last ones, bounded in number and in bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "events/run_event.h"

namespace sextant {

class KeptEvents {
 public:
  static constexpr size_t kMostEvents = 20'000, kMostBytes = size_t{16} << 20;  // of their lines

  void add_line(std::string_view line);  // one that is no event is left out
  void clear() { *this = KeptEvents(); }

  const std::vector<RunEvent>& all() const { return events_; }
  size_t bytes_of(size_t i) const { return bytes_[i]; }

 private:
  void drop_first(size_t count);

  std::vector<RunEvent> events_;
  std::vector<size_t> bytes_;
  size_t sum_ = 0;
};

}  // namespace sextant
