#include "train/save/replication.h"

#include <algorithm>

namespace sextant {

std::vector<int> copy_holders(const std::vector<RankPlace>& ranks, int64_t jump) {
  auto count = static_cast<int64_t>(ranks.size());
  std::vector<int> holders(ranks.size(), -1);
  if (jump > 0) {
    for (int64_t rank = 0; rank < count; ++rank)
      if (jump % count != 0) holders[static_cast<size_t>(rank)] = static_cast<int>((rank + jump) % count);
    return holders;
  }
  std::vector<uint64_t> hosts;  // in the order of their first ranks
  std::vector<std::vector<int>> ranks_on;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    auto at = std::ranges::find(hosts, ranks[rank].host);
    if (at == hosts.end()) {
      hosts.push_back(ranks[rank].host);
      ranks_on.emplace_back();
      at = hosts.end() - 1;
    }
    ranks_on[static_cast<size_t>(at - hosts.begin())].push_back(static_cast<int>(rank));
  }
  if (hosts.size() < 2) return holders;
  for (size_t host = 0; host < hosts.size(); ++host) {
    const std::vector<int>& next = ranks_on[(host + 1) % hosts.size()];
    for (size_t i = 0; i < ranks_on[host].size(); ++i) {
      auto rank = static_cast<size_t>(ranks_on[host][i]);
      bool replicated = std::ranges::any_of(ranks, [&](const RankPlace& other) {
        return other.layout == ranks[rank].layout && other.host != ranks[rank].host;
      });
      if (!replicated) holders[rank] = next[i % next.size()];
    }
  }
  return holders;
}

}  // namespace sextant
