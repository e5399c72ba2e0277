#include "bench/comm/comm_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "bench/statistics.h"
#include "comm/tags.h"

namespace sextant {

namespace {

constexpr int kPings = 40, kTransfers = 6, kSecondLooks = 2;
constexpr double kSlowBandwidth = 0.5, kSlowLatency = 4;  // of the middle of links of the same kind
constexpr double kLatencyNoise = 20e-6;                   // what a busy core may add

// There and back, halved.
std::vector<double> one_way(Transport& transport, int peer, std::span<std::byte> bytes, int times) {
  bool first = transport.rank() < peer;
  std::vector<double> seconds;
  AbortOnThrow guard(transport);
  for (int i = 0; i < times; ++i) {
    auto start = std::chrono::steady_clock::now();
    if (first) transport.wait(transport.send(peer, kHostTag, bytes));
    transport.wait(transport.receive(peer, kHostTag, bytes));
    if (!first) transport.wait(transport.send(peer, kHostTag, bytes));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 2);
  }
  return seconds;
}

double best_of(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

LinkKind kind_of(const RankLink& link) {
  return link.same_host ? LinkKind::within_host : LinkKind::between_hosts;
}

double share_of(const std::vector<RankLink>& links, LinkKind kind, double RankLink::*field, double share) {
  std::vector<double> values;
  for (const RankLink& link : links)
    if (kind_of(link) == kind) values.push_back(link.*field);
  return quantile_of(values, share);
}

// A quartile of the better links, not the median: one slow rank makes half of the links of four ranks slow.
double usual_bandwidth(const std::vector<RankLink>& links, LinkKind kind) {
  return share_of(links, kind, &RankLink::bytes_per_s, 0.75);
}
double usual_latency(const std::vector<RankLink>& links, LinkKind kind) {
  return share_of(links, kind, &RankLink::latency_s, 0.25);
}

std::vector<RankLink> find_outliers(const std::vector<RankLink>& links) {
  std::vector<RankLink> odd;
  for (const RankLink& link : links)
    if (link.bytes_per_s < kSlowBandwidth * usual_bandwidth(links, kind_of(link)) ||
        link.latency_s > kSlowLatency * usual_latency(links, kind_of(link)) + kLatencyNoise)
      odd.push_back(link);
  return odd;
}

std::vector<std::pair<int, int>> pairs_of(int ranks) {
  std::vector<std::pair<int, int>> pairs;
  for (int from = 0; from < ranks; ++from)
    for (int to = from + 1; to < ranks; ++to) pairs.emplace_back(from, to);
  return pairs;
}

std::string figures(const RankLink& link) {
  return fmt::format("{:.1f} µs, {:.2f} GB/s", link.latency_s * 1e6, link.bytes_per_s / 1e9);
}

bool touches(const RankLink& link, int rank) {
  return link.from == rank || link.to == rank;
}

// All ranks come; two of them measure, and everyone learns the result.
class LinkProbe {
 public:
  LinkProbe(CommWorld& world, int64_t large)
      : world_(world), small_(static_cast<size_t>(kPingBytes)), large_(static_cast<size_t>(large)) {}

  RankLink measure(RankLink link) {
    std::vector<double> own(kPings + kTransfers);
    if (world_.rank() == link.from || world_.rank() == link.to) {
      int peer = world_.rank() == link.from ? link.to : link.from;
      own = one_way(*world_.transport(), peer, small_, kPings);
      std::vector<double> transfers = one_way(*world_.transport(), peer, large_, kTransfers);
      own.insert(own.end(), transfers.begin(), transfers.end());
    }
    std::vector<double> all = world_.gather(own);
    auto first = all.begin() + static_cast<std::ptrdiff_t>(own.size()) * link.from;
    link.pings.assign(first, first + kPings);
    link.transfers.assign(first + kPings, first + kPings + kTransfers);
    link.large = static_cast<double>(large_.size());
    link.latency_s = best_of(link.pings);
    link.bytes_per_s = link.large / best_of(link.transfers);
    return link;
  }

 private:
  CommWorld& world_;
  std::vector<std::byte> small_, large_;
};

}  // namespace

std::vector<double> hosts_by_rank(CommWorld& world, const std::string& own) {
  double number = static_cast<double>(hash64(own) >> 12);  // exact in a double
  return world.gather(std::span(&number, 1));
}

std::vector<RankLink> measure_links(CommWorld& world, const LinkRequest& request, const Watch& watch) {
  std::vector<double> hosts = hosts_by_rank(world, request.host);
  LinkProbe probe(world, request.large);
  std::vector<RankLink> links;
  for (auto [from, to] : pairs_of(std::min(world.size(), kMostLinkRanks))) {
    if (!world.agree(!watch.stop())) break;
    if (world.rank() == 0) watch.say(fmt::format("link {}-{}", from, to));
    links.push_back(probe.measure(
        {.from = from, .to = to, .same_host = hosts[static_cast<size_t>(from)] == hosts[static_cast<size_t>(to)]}));
  }
  // A core that was busy elsewhere makes a link look slow once; who is slow again is slow.
  for (int again = 0; again < kSecondLooks; ++again)
    for (const RankLink& odd : find_outliers(links)) {
      RankLink second = probe.measure(odd);
      RankLink& link = *std::find_if(links.begin(), links.end(),
                                     [&](const RankLink& l) { return l.from == odd.from && l.to == odd.to; });
      if (second.latency_s < link.latency_s) link.latency_s = second.latency_s, link.pings = std::move(second.pings);
      if (second.bytes_per_s > link.bytes_per_s)
        link.bytes_per_s = second.bytes_per_s, link.transfers = std::move(second.transfers);
    }
  return links;
}

LinkProfile profile_of(const std::vector<RankLink>& links, LinkKind kind) {
  auto links_of_kind =
      std::count_if(links.begin(), links.end(), [kind](const RankLink& link) { return kind_of(link) == kind; });
  return {share_of(links, kind, &RankLink::latency_s, 0.5), share_of(links, kind, &RankLink::bytes_per_s, 0.5),
          static_cast<int>(links_of_kind)};
}

std::vector<std::string> odd_links(const std::vector<RankLink>& links) {
  if (links.size() < 3) return {};  // two ranks have one link, and nothing to compare it with
  std::vector<RankLink> odd = find_outliers(links);
  std::map<int, size_t> all, bad;
  for (const RankLink& link : links) ++all[link.from], ++all[link.to];
  for (const RankLink& link : odd) ++bad[link.from], ++bad[link.to];
  std::vector<std::string> sentences;
  // A rank whose links are slow for the most part is the cause of them; the others hang on it.
  for (const auto& [rank, count] : bad) {
    if (2 * count <= all[rank]) continue;
    auto worst = std::min_element(odd.begin(), odd.end(), [r = rank](const RankLink& a, const RankLink& b) {
      return (touches(a, r) ? a.bytes_per_s : HUGE_VAL) < (touches(b, r) ? b.bytes_per_s : HUGE_VAL);
    });
    if (worst == odd.end() || !touches(*worst, rank)) continue;
    sentences.push_back(fmt::format("rank {} is slow to {} of {} others: {} at worst, where {:.2f} GB/s are usual",
                                    rank, count, all[rank], figures(*worst),
                                    usual_bandwidth(links, kind_of(*worst)) / 1e9));
    std::erase_if(odd, [r = rank](const RankLink& link) { return touches(link, r); });
  }
  for (const RankLink& link : odd)
    sentences.push_back(fmt::format("the link {}-{} is slow: {}, where {:.1f} µs, {:.2f} GB/s are usual", link.from,
                                    link.to, figures(link), usual_latency(links, kind_of(link)) * 1e6,
                                    usual_bandwidth(links, kind_of(link)) / 1e9));
  return sentences;
}

std::string links_text(const std::vector<RankLink>& links) {
  if (links.empty()) return "";
  int ranks = 0;
  for (const RankLink& link : links) ranks = std::max(ranks, link.to + 1);
  auto table = [&](const std::string& title, auto value) {
    std::string text = fmt::format("{}\n{:>6}", title, "");
    for (int to = 0; to < ranks; ++to) text += fmt::format("{:>8}", to);
    for (int from = 0; from < ranks; ++from) {
      text += fmt::format("\n{:>6}", from);
      for (int to = 0; to < ranks; ++to) {
        auto at = std::find_if(links.begin(), links.end(), [&](const RankLink& l) {
          return l.from == std::min(from, to) && l.to == std::max(from, to);
        });
        text += at == links.end() ? fmt::format("{:>8}", "·") : fmt::format("{:>8}", value(*at));
      }
    }
    return text + "\n";
  };
  return table("latency between ranks, µs one way",
               [](const RankLink& l) { return fmt::format("{:.1f}", l.latency_s * 1e6); }) +
         "\n" + table("bandwidth between ranks, GB/s one way", [](const RankLink& l) {
           return fmt::format("{:.2f}", l.bytes_per_s / 1e9);
         });
}

}  // namespace sextant
