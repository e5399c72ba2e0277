#include "doctor/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "comm/collectives.h"
#include "comm/tags.h"
#include "doctor/report.h"

namespace sextant {

namespace {

constexpr int kPings = 20;
constexpr double kSkewNoticed = 0.1;                       // seconds
constexpr double kSlowFactor = 10, kSlowRoundTrip = 1e-3;  // beyond the median of the others, and beyond this
constexpr size_t kPayload = 1 << 20;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Measurements by rank 0 of the connection to another rank.
struct Way {
  double offset = 0;      // of that rank's clock, in seconds
  double round_trip = 0;  // the shortest, in seconds
  bool intact = true;
};

std::vector<std::byte> payload_for(int rank) {
  Random random(static_cast<uint64_t>(rank), "doctor.payload");
  std::vector<std::byte> bytes(kPayload);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.bits(i / 8) >> (i % 8 * 8));
  return bytes;
}

void exchange(Transport& transport, int peer, std::span<std::byte> bytes, std::span<std::byte> answer) {
  AbortOnThrow guard(transport);
  Ticket sent = transport.send(peer, kHostTag, bytes), received = transport.receive(peer, kHostTag, answer);
  transport.wait(sent);
  transport.wait(received);
}

Way ask(Transport& transport, const Host& host, int peer) {
  Way way{.round_trip = HUGE_VAL};
  for (int i = 0; i < kPings; ++i) {
    double before = host.now(), theirs = 0, mark = before;
    exchange(transport, peer, bytes_of(mark), bytes_of(theirs));
    double after = host.now();
    if (after - before >= way.round_trip) continue;
    way.round_trip = after - before;
    way.offset = theirs - (before + after) / 2;
  }
  std::vector<std::byte> payload = payload_for(peer), back(kPayload);
  exchange(transport, peer, payload, back);
  way.intact = payload == back;
  return way;
}

void answer(Transport& transport, const Host& host) {
  for (int i = 0; i < kPings; ++i) {
    double mark = 0;
    AbortOnThrow guard(transport);
    transport.wait(transport.receive(0, kHostTag, bytes_of(mark)));
    double own = host.now();
    transport.wait(transport.send(0, kHostTag, bytes_of(own)));
  }
  std::vector<std::byte> payload(kPayload);
  AbortOnThrow guard(transport);
  transport.wait(transport.receive(0, kHostTag, payload));
  transport.wait(transport.send(0, kHostTag, payload));
}

Finding judge_clocks(const std::vector<Way>& ways, const std::vector<RankExamination>& ranks) {
  std::vector<double> offsets;
  for (const Way& way : ways) offsets.push_back(way.offset);
  double usual = median(offsets), widest = 0;
  std::vector<int> odd;
  for (size_t rank = 0; rank < ways.size(); ++rank) {
    double skew = std::abs(ways[rank].offset - usual);
    widest = std::max(widest, skew);
    if (skew > kSkewNoticed + ways[rank].round_trip / 2) odd.push_back(static_cast<int>(rank));
  }
  std::string found = widest < 1e-3 ? "less than 1 ms apart" : fmt::format("up to {:.3f} s apart", widest);
  if (odd.empty()) return {"ranks", "clocks", Health::ok, found, {}};
  return {"ranks",
          "clocks",
          Health::warning,
          fmt::format("{} from the others'", found),
          "logs will not align and files get times in the future: start chronyd on that machine",
          place_of(odd, ranks)};
}

Finding judge_ways(const std::vector<Way>& ways, const std::vector<RankExamination>& ranks) {
  std::vector<double> times;
  std::vector<int> broken, slow;
  for (size_t rank = 1; rank < ways.size(); ++rank) {
    times.push_back(ways[rank].round_trip);
    if (!ways[rank].intact) broken.push_back(static_cast<int>(rank));
  }
  double usual = median(times), slowest = *std::max_element(times.begin(), times.end());
  for (size_t rank = 1; rank < ways.size(); ++rank)
    if (ways[rank].round_trip > std::max(kSlowRoundTrip, kSlowFactor * usual)) slow.push_back(static_cast<int>(rank));
  std::string found =
      fmt::format("{:.0f} µs there and back, {:.0f} µs to the slowest rank", usual * 1e6, slowest * 1e6);
  if (!broken.empty())
    return {"ranks",
            "messages",
            Health::failure,
            "1 MiB came back changed",
            "a network card or a link on the way corrupts data: take that machine out",
            place_of(broken, ranks)};
  if (!slow.empty())
    return {"ranks",
            "messages",
            Health::warning,
            found,
            "look at that machine's network card, its cable and what else runs there",
            place_of(slow, ranks)};
  return {"ranks", "messages", Health::ok, found, {}};
}

}  // namespace

std::string place_of(const std::vector<int>& chosen, const std::vector<RankExamination>& ranks) {
  if (chosen.size() == ranks.size()) return "";
  std::map<std::string, std::pair<int, std::vector<int>>> hosts;  // how many ranks each has, and those chosen
  for (const RankExamination& rank : ranks) ++hosts[rank.host].first;
  for (int rank : chosen) hosts[ranks[static_cast<size_t>(rank)].host].second.push_back(rank);
  std::vector<std::string> parts;
  for (const auto& [host, counted] : hosts) {
    const auto& [all, some] = counted;
    if (some.empty()) continue;
    if (static_cast<int>(some.size()) == all)
      parts.push_back(host);
    else
      parts.push_back(fmt::format("rank{} {} ({})", some.size() > 1 ? "s" : "", fmt::join(some, ", "), host));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<RankExamination> gather_examinations(Transport& transport, const Host& host, const Examination& own) {
  AbortOnThrow guard(transport);
  if (transport.rank() > 0) {
    std::string text = pack_examination({transport.rank(), host.name, own});
    uint64_t size = text.size();
    transport.wait(transport.send(0, kHostTag, bytes_of(size)));
    transport.wait(transport.send(0, kHostTag, std::as_bytes(std::span(text))));
    return {};
  }
  std::vector<RankExamination> all{{0, host.name, own}};
  for (int rank = 1; rank < transport.size(); ++rank) {
    uint64_t size = 0;
    transport.wait(transport.receive(rank, kHostTag, bytes_of(size)));
    std::string text(size, '\0');
    transport.wait(transport.receive(rank, kHostTag, std::as_writable_bytes(std::span(text))));
    all.push_back(unpack_examination(text));
  }
  return all;
}

std::vector<Finding> merge_findings(const std::vector<RankExamination>& ranks) {
  // By check and by what it says where it is not ok; the order is that of the first rank that has it.
  std::vector<Finding> merged;
  std::vector<std::vector<int>> holders;
  for (const RankExamination& rank : ranks)
    for (const Finding& finding : rank.exam.findings) {
      auto same = [&](const Finding& m) {
        return m.group == finding.group && m.name == finding.name && m.health == finding.health &&
               (m.health == Health::ok || m.found == finding.found);
      };
      auto at = std::find_if(merged.begin(), merged.end(), same);
      if (at == merged.end()) {
        // Beside what other ranks found for the same check, and so in its group.
        at = std::find_if(merged.rbegin(), merged.rend(), [&](const Finding& m) {
               return m.group == finding.group;
             }).base();
        if (at == merged.begin()) at = merged.end();
        holders.insert(holders.begin() + (at - merged.begin()), std::vector<int>{});
        at = merged.insert(at, finding);
      }
      holders[static_cast<size_t>(at - merged.begin())].push_back(rank.rank);
    }
  for (size_t i = 0; i < merged.size(); ++i) merged[i].where = place_of(holders[i], ranks);
  return merged;
}

std::vector<Finding> compare_facts(const std::vector<RankExamination>& ranks) {
  std::vector<std::string> names;
  for (const RankExamination& rank : ranks)
    for (const Fact& fact : rank.exam.facts)
      if (std::find(names.begin(), names.end(), fact.name) == names.end()) names.push_back(fact.name);
  std::vector<Finding> findings;
  for (const std::string& name : names) {
    std::map<std::string, std::vector<int>> holders;
    for (const RankExamination& rank : ranks) {
      auto fact =
          std::find_if(rank.exam.facts.begin(), rank.exam.facts.end(), [&](const Fact& f) { return f.name == name; });
      holders[fact == rank.exam.facts.end() ? "none" : fact->value].push_back(rank.rank);
    }
    if (holders.size() == 1) continue;
    auto most = std::max_element(holders.begin(), holders.end(),
                                 [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    bool majority = 2 * most->second.size() > ranks.size();
    std::vector<int> odd;
    std::vector<std::string> parts;
    for (const auto& [value, who] : holders) {
      if (majority && value == most->first) continue;
      odd.insert(odd.end(), who.begin(), who.end());
      parts.push_back(majority ? value : fmt::format("{} on {}", value, place_of(who, ranks)));
    }
    std::string found = majority ? fmt::format("{} where {} of {} ranks have {}", fmt::join(parts, ", "),
                                               most->second.size(), ranks.size(), most->first)
                                 : fmt::format("no majority: {}", fmt::join(parts, "; "));
    std::sort(odd.begin(), odd.end());
    findings.push_back({"ranks", "same " + name, Health::warning, found,
                        "machines of one run should be alike: bring the odd one in line, or leave it out",
                        majority ? place_of(odd, ranks) : ""});
  }
  if (findings.empty())
    findings.push_back({"ranks",
                        "alike",
                        Health::ok,
                        fmt::format("{} ranks, the same in {} respects", ranks.size(), names.size()),
                        {}});
  return findings;
}

std::vector<Finding> check_messages(Transport& transport, const Host& host, const std::vector<RankExamination>& ranks) {
  std::vector<Way> ways(1);
  for (int peer = 1; peer < transport.size(); ++peer) {
    if (transport.rank() == 0)
      ways.push_back(ask(transport, host, peer));
    else if (transport.rank() == peer)
      answer(transport, host);
  }
  if (transport.rank() > 0) return {};
  return {judge_clocks(ways, ranks), judge_ways(ways, ranks)};
}

}  // namespace sextant
