// Work that all ranks do, the leader before the others, because it leaves something behind that they need: a cache of
// tokens, a prepared directory. It may take longer than any time-out: while the leader works it tells the others so.
#pragma once

#include <chrono>
#include <functional>

#include "comm/host_group.h"

namespace sextant {

// `sign_of_life`: how often the leader tells them.
void leader_first(HostGroup& group, std::chrono::milliseconds sign_of_life, const std::function<void()>& work);

}  // namespace sextant
