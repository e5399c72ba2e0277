#include "bench/comm_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "bench/statistics.h"
#include "comm/tags.h"

namespace sextant {

namespace {

constexpr int kPings = 40, kTransfers = 6, kSecondLooks = 2;
constexpr size_t kSmall = 8;
constexpr double kSlowBandwidth = 0.5, kSlowLatency = 4;  // of the middle of links of the same kind
constexpr double kLatencyNoise = 20e-6;                   // what a busy core may add

// There and back; the best of several, halved.
double best_way(Transport& transport, int peer, std::span<std::byte> bytes, int times) {
  bool first = transport.rank() < peer;
  double best = HUGE_VAL;
  AbortOnThrow guard(transport);
  for (int i = 0; i < times; ++i) {
    auto start = std::chrono::steady_clock::now();
    if (first) transport.wait(transport.send(peer, kHostTag, bytes));
    transport.wait(transport.receive(peer, kHostTag, bytes));
    if (!first) transport.wait(transport.send(peer, kHostTag, bytes));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best / 2;
}

LinkKind kind_of(const Link& link) {
  return link.same_host ? LinkKind::within_host : LinkKind::between_hosts;
}

double share_of(const std::vector<Link>& links, LinkKind kind, double Link::*field, double share) {
  std::vector<double> values;
  for (const Link& link : links)
    if (kind_of(link) == kind) values.push_back(link.*field);
  return quantile_of(values, share);
}

// What the better links reach: one slow rank makes half of the links of four ranks slow, so the middle would be no
// measure.
double usual_bandwidth(const std::vector<Link>& links, LinkKind kind) {
  return share_of(links, kind, &Link::bytes_per_s, 0.75);
}
double usual_latency(const std::vector<Link>& links, LinkKind kind) {
  return share_of(links, kind, &Link::latency_s, 0.25);
}

std::vector<Link> odd_among(const std::vector<Link>& links) {
  std::vector<Link> odd;
  for (const Link& link : links)
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

std::string figures(const Link& link) {
  return fmt::format("{:.1f} µs, {:.2f} GB/s", link.latency_s * 1e6, link.bytes_per_s / 1e9);
}

bool touches(const Link& link, int rank) {
  return link.from == rank || link.to == rank;
}

// All ranks come; two of them measure, and everyone learns the result.
class LinkProbe {
 public:
  LinkProbe(CommWorld& world, int64_t large) : world_(world), small_(kSmall), large_(static_cast<size_t>(large)) {}

  Link measure(Link link) {
    double latency = 0, seconds = 0;
    if (world_.rank() == link.from || world_.rank() == link.to) {
      int peer = world_.rank() == link.from ? link.to : link.from;
      latency = best_way(*world_.transport(), peer, small_, kPings);
      seconds = best_way(*world_.transport(), peer, large_, kTransfers);
    }
    std::array<double, 2> own{latency, seconds};
    std::vector<double> all = world_.gather(own);
    link.latency_s = all[2 * static_cast<size_t>(link.from)];
    link.large = static_cast<double>(large_.size());
    link.bytes_per_s = link.large / all[2 * static_cast<size_t>(link.from) + 1];
    return link;
  }

 private:
  CommWorld& world_;
  std::vector<std::byte> small_, large_;
};

}  // namespace

std::vector<Link> measure_links(CommWorld& world, const LinkRequest& request, const Watch& watch) {
  double own_host = static_cast<double>(hash64(request.host) >> 12);  // exact in a double
  std::vector<double> hosts = world.gather(std::span(&own_host, 1));
  LinkProbe probe(world, request.large);
  std::vector<Link> links;
  for (auto [from, to] : pairs_of(std::min(world.size(), kMostLinkRanks))) {
    if (!world.agree(!watch.stop())) break;
    if (world.rank() == 0) watch.say(fmt::format("link {}-{}", from, to));
    links.push_back(probe.measure(
        {.from = from, .to = to, .same_host = hosts[static_cast<size_t>(from)] == hosts[static_cast<size_t>(to)]}));
  }
  // A core that was busy elsewhere makes a link look slow once; who is slow again is slow.
  for (int again = 0; again < kSecondLooks; ++again)
    for (const Link& odd : odd_among(links)) {
      Link second = probe.measure(odd);
      Link& link = *std::find_if(links.begin(), links.end(),
                                 [&](const Link& l) { return l.from == odd.from && l.to == odd.to; });
      link.latency_s = std::min(link.latency_s, second.latency_s);
      link.bytes_per_s = std::max(link.bytes_per_s, second.bytes_per_s);
    }
  return links;
}

LinkProfile profile_of(const std::vector<Link>& links, LinkKind kind) {
  auto links_of_kind =
      std::count_if(links.begin(), links.end(), [kind](const Link& link) { return kind_of(link) == kind; });
  return {share_of(links, kind, &Link::latency_s, 0.5), share_of(links, kind, &Link::bytes_per_s, 0.5),
          static_cast<int>(links_of_kind)};
}

std::vector<std::string> odd_links(const std::vector<Link>& links) {
  if (links.size() < 3) return {};  // two ranks have one link, and nothing to compare it with
  std::vector<Link> odd = odd_among(links);
  std::map<int, size_t> all, bad;
  for (const Link& link : links) ++all[link.from], ++all[link.to];
  for (const Link& link : odd) ++bad[link.from], ++bad[link.to];
  std::vector<std::string> sentences;
  // A rank whose links are slow for the most part is the cause of them; the others hang on it.
  for (const auto& [rank, count] : bad) {
    if (2 * count <= all[rank]) continue;
    auto worst = std::min_element(odd.begin(), odd.end(), [r = rank](const Link& a, const Link& b) {
      return (touches(a, r) ? a.bytes_per_s : HUGE_VAL) < (touches(b, r) ? b.bytes_per_s : HUGE_VAL);
    });
    if (worst == odd.end() || !touches(*worst, rank)) continue;
    sentences.push_back(fmt::format("rank {} is slow to {} of {} others: {} at worst, where {:.2f} GB/s are usual",
                                    rank, count, all[rank], figures(*worst),
                                    usual_bandwidth(links, kind_of(*worst)) / 1e9));
    std::erase_if(odd, [r = rank](const Link& link) { return touches(link, r); });
  }
  for (const Link& link : odd)
    sentences.push_back(fmt::format("the link {}-{} is slow: {}, where {:.1f} µs, {:.2f} GB/s are usual", link.from,
                                    link.to, figures(link), usual_latency(links, kind_of(link)) * 1e6,
                                    usual_bandwidth(links, kind_of(link)) / 1e9));
  return sentences;
}

std::string links_text(const std::vector<Link>& links) {
  if (links.empty()) return "";
  int ranks = 0;
  for (const Link& link : links) ranks = std::max(ranks, link.to + 1);
  auto table = [&](const std::string& title, auto value) {
    std::string text = fmt::format("{}\n{:>6}", title, "");
    for (int to = 0; to < ranks; ++to) text += fmt::format("{:>8}", to);
    for (int from = 0; from < ranks; ++from) {
      text += fmt::format("\n{:>6}", from);
      for (int to = 0; to < ranks; ++to) {
        auto at = std::find_if(links.begin(), links.end(), [&](const Link& l) {
          return l.from == std::min(from, to) && l.to == std::max(from, to);
        });
        text += at == links.end() ? fmt::format("{:>8}", "·") : fmt::format("{:>8}", value(*at));
      }
    }
    return text + "\n";
  };
  return table("latency between ranks, µs one way",
               [](const Link& l) { return fmt::format("{:.1f}", l.latency_s * 1e6); }) +
         "\n" + table("bandwidth between ranks, GB/s one way", [](const Link& l) {
           return fmt::format("{:.2f}", l.bytes_per_s / 1e9);
         });
}

}  // namespace sextant
