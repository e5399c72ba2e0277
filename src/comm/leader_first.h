// Work that all ranks do, the leader before the others, because it leaves something behind that they need: a cache of
// tokens, a prepared directory. It may take longer than any time-out: while the leader works it sends keep-alives.
#pragma once

#include <chrono>
#include <functional>

#include "comm/host_group.h"

namespace sextant {

// `interval`: how often the leader sends one.
void leader_first(HostGroup& group, std::chrono::milliseconds interval, const std::function<void()>& work);

}  // namespace sextant
