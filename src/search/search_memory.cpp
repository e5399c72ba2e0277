#include "search/search_memory.h"

#include <algorithm>

namespace sextant {

SearchMemory search_memory(const SearchRequest& request) {
  const Machine& machine = request.machine;
  SearchMemory memory{.basis = memory_basis(&machine, &request.profile, request.run, request.spec.experts.has_value())};
  const MemoryIntervalModel* errors = request.intervals ? &request.intervals->memory() : nullptr;
  memory.headroom = headroom_for({.asked = request.headroom ? &*request.headroom : nullptr,
                                  .basis = memory.basis,
                                  .device = machine.device.name,
                                  .software = request.profile.name,
                                  .errors = errors});
  memory.room = machine.device.memory_bytes;
  if (memory.basis == MemoryBasis::estimate) {
    memory.room -= request.profile.headroom_bytes;
    if (errors && !errors->empty())
      memory.interval = errors->interval(machine.device.name, request.profile.name, kIntervalShare);
  }
  memory.limit = std::min(memory.room, (1 - memory.headroom.share) * machine.device.memory_bytes);
  memory.limit = std::max(memory.limit, request.known_to_fit_bytes);
  return memory;
}

}  // namespace sextant
