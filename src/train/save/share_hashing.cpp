#include "train/save/share_hashing.h"

namespace sextant {

ShareBlocks share_among(HostGroup& group, ThreadTeam* team) {
  return [&group, team](size_t count, const std::function<uint64_t(size_t)>& hash_of) {
    std::vector<int64_t> values(count, 0);  // 0 where another rank hashes: the sum over ranks has every block once
    auto size = static_cast<size_t>(group.size()), rank = static_cast<size_t>(group.rank());
    size_t own = count > rank ? (count - rank + size - 1) / size : 0;
    auto hash = [&](int64_t i, int) {
      size_t block = rank + static_cast<size_t>(i) * size;
      values[block] = static_cast<int64_t>(hash_of(block));
    };
    if (team)
      team->parallel_for(static_cast<int64_t>(own), hash);
    else
      for (size_t i = 0; i < own; ++i) hash(static_cast<int64_t>(i), 0);
    group.sum(values);
    return std::vector<uint64_t>(values.begin(), values.end());
  };
}

}  // namespace sextant
