// A network small enough to write down every link: messages are routed one by one, and the busiest link tells how long
// they take. Knows nothing of the closed forms in cost/topology.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sextant {

class SmallNetwork {
 public:
  using LinkName = std::string;
  struct Hop {
    LinkName link;
    double share = 1;  // of the message
  };
  using Route = std::function<std::vector<Hop>(int64_t from, int64_t to)>;

  // Links that are not named have no limit.
  SmallNetwork(std::map<LinkName, double> bytes_per_s, Route route)
      : bytes_per_s_(std::move(bytes_per_s)), route_(std::move(route)) {}

  void send(int64_t from, int64_t to, double bytes) {
    for (const Hop& hop : route_(from, to)) carried_[hop.link] += bytes * hop.share;
  }

  double seconds() const {
    double most = 0;
    for (const auto& [link, bytes] : carried_) {
      auto limit = bytes_per_s_.find(link);
      if (limit != bytes_per_s_.end()) most = std::max(most, bytes / limit->second);
    }
    return most;
  }

 private:
  std::map<LinkName, double> bytes_per_s_;
  Route route_;
  std::map<LinkName, double> carried_;
};

// All groups of `count` devices that are `stride` apart, of so many devices.
inline std::vector<std::vector<int64_t>> strided_groups(int64_t devices, int64_t count, int64_t stride) {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t block = 0; block + count * stride <= devices; block += count * stride)
    for (int64_t first = block; first < block + stride; ++first) {
      groups.emplace_back();
      for (int64_t i = 0; i < count; ++i) groups.back().push_back(first + i * stride);
    }
  return groups;
}

}  // namespace sextant
