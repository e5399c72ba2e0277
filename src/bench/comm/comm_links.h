// Every pair of ranks by itself: how long a small message takes, how fast a large one travels, and which rank or link
// is unlike the others. All ranks call measure_links together; every rank gets the whole table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/comm/comm_world.h"
#include "bench/stop.h"

namespace sextant {

struct RankLink {
  int from = 0, to = 0;    // from < to
  double latency_s = 0;    // one way, at best
  double bytes_per_s = 0;  // one way, at best, nothing else under way
  bool same_host = true;
  double large = 0;                      // bytes of the message that told the bandwidth
  std::vector<double> pings, transfers;  // seconds one way of every small and every large message
};
inline constexpr double kPingBytes = 8;

struct LinkRequest {
  std::string host;  // where this rank runs
  int64_t large = 1 << 22;
};

// A number for the machine that each rank runs on: equal where machines are.
std::vector<double> hosts_by_rank(CommWorld& world, const std::string& own);

inline constexpr int kMostLinkRanks = 64;  // beyond them pairs are too many: the first ones are measured

std::vector<RankLink> measure_links(CommWorld& world, const LinkRequest& request, const Watch& watch);

// Of links within a machine and of those between machines: the middle of each, as machine files want them.
struct LinkProfile {
  double latency_s = 0, bytes_per_s = 0;
  int links = 0;  // 0: there are none of this kind
};
enum class LinkKind : uint8_t { within_host, between_hosts };
LinkProfile profile_of(const std::vector<RankLink>& links, LinkKind kind);

// Sentences: "rank 2 is slow to all others: …", "the link 0-3 is slow: …". A link is odd beside others of its kind
// only.
std::vector<std::string> odd_links(const std::vector<RankLink>& links);

// Latency and bandwidth as two square tables.
std::string links_text(const std::vector<RankLink>& links);

}  // namespace sextant
