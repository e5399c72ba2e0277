// How much memory a layout of a search may need, and how far that is known.
#pragma once

#include <optional>

#include "plan/headroom.h"
#include "search/search.h"

namespace sextant {

struct SearchMemory {
  MemoryBasis basis = MemoryBasis::exact;
  Headroom headroom;
  std::optional<MemoryInterval> interval;  // of estimates, where errors are known
  double room = 0;                         // of a device, without what the software's allocator needs
  double limit = 0;                        // bytes that a layout may need
};

SearchMemory search_memory(const SearchRequest& request);

}  // namespace sextant
