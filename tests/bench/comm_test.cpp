// The rules of nccl-tests, on published figures; and ranks as threads: right results, a corrupted one that is found, a
// slow rank and a slow link that are named.
#include "bench/comm/comm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "exec/cpu/cpu_executor.h"

namespace sextant {
namespace {

constexpr double kGiB = 1 << 30;

// Cases A8 to A10 of the list of worked cases: published figures in GB/s.
TEST(CommRules, AreThoseOfNcclTests) {
  EXPECT_NEAR(algorithm_bandwidth(4 * kGiB, 10.15e-3) / 1e9, 423.15, 0.01);
  EXPECT_NEAR(bus_bandwidth(Collective::all_reduce, 8, 4 * kGiB, 10.15e-3) / 1e9, 740.51, 0.01);
  EXPECT_NEAR(algorithm_bandwidth(4 * kGiB, 22.05e-3) / 1e9, 194.78, 0.01);
  EXPECT_NEAR(bus_bandwidth(Collective::all_reduce, 32, 4 * kGiB, 22.05e-3) / 1e9, 377.39, 0.01);
  EXPECT_NEAR(algorithm_bandwidth(kGiB, 2.6e-3) / 1e9, 412.98, 0.01);
  EXPECT_NEAR(bus_bandwidth(Collective::all_gather, 8, kGiB, 2.6e-3) / 1e9, 361.36, 0.01);
  EXPECT_NEAR(algorithm_bandwidth(kGiB / 4, 1e-3) / 1e9, 268.44, 0.01);
  EXPECT_NEAR(bus_bandwidth(Collective::all_to_all, 16, kGiB / 4, 1e-3) / 1e9, 251.66, 0.01);
  EXPECT_EQ(share_sent(Collective::broadcast, 8), 1);
  EXPECT_EQ(share_sent(Collective::shift, 8), 1);
  EXPECT_EQ(share_sent(Collective::reduce_scatter, 4), 0.75);
}

// A transport with one thing wrong.
class Faulty final : public Transport {
 public:
  explicit Faulty(Transport& inner) : inner_(inner) {}
  int corrupt_from = -1;  // what comes from this rank in collectives arrives with a byte changed
  int slow_to = -2;       // sends to this rank are late; -1: to all
  std::chrono::microseconds delay{0};
  std::chrono::microseconds usual{0};  // what a send to any other rank takes

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Ticket send(int to, int tag, std::span<const std::byte> bytes) override {
    std::this_thread::sleep_for(slow_to == -1 || slow_to == to ? delay : usual);
    return inner_.send(to, tag, bytes);
  }
  Ticket receive(int from, int tag, std::span<std::byte> bytes) override {
    Ticket ticket = inner_.receive(from, tag, bytes);
    if (from == corrupt_from && tag == kCollectiveTag) corrupted_ = ticket.slot, place_ = bytes;
    return ticket;
  }
  void wait(Ticket ticket) override {
    inner_.wait(ticket);
    if (ticket.slot != corrupted_ || place_.empty()) return;
    place_[place_.size() / 2] ^= std::byte{0x10};
    corrupted_ = -1;
  }

 private:
  void end_run(const std::string& reason, ExitCode code) override { inner_.abort(reason, code); }

  Transport& inner_;
  int32_t corrupted_ = -1;
  std::span<std::byte> place_;
};

CommRequest small_request(const Mesh& mesh, int rank) {
  return {.groups = groups_of(mesh, rank),
          .ops = {std::begin(kCommOps), std::end(kCommOps)},
          .smallest = 1 << 10,
          .largest = 1 << 14,
          .step = 16,
          .calls = 5,
          .host = "here"};
}

template <class Plant>
CommReport run(const Mesh& mesh, const Plant& plant, const Watch& watch = {}) {
  CommReport report;
  int ranks = mesh.world_size();
  ThreadHub hub(ranks, std::chrono::seconds(20));
  for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
         Faulty faulty(transport);
         plant(faulty);
         CommWorld world(&faulty);
         CommReport own = bench_comm(world, small_request(mesh, transport.rank()), watch);
         if (transport.rank() == 0) report = own;
       }))
    EXPECT_EQ(end.error, "");
  return report;
}

bool any_says(const std::vector<std::string>& findings, const std::string& words) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const std::string& f) { return f.find(words) != std::string::npos; });
}

TEST(CommBench, EveryOpIsRightOnEveryGroupOfAMesh) {
  CommReport report = run({{{"dp", 2}, {"tp", 2}}}, [](Faulty&) {});
  // Six ops, two of them in both places, two sizes, on dp, tp, both at once, and all ranks.
  EXPECT_EQ(report.rows.size(), 4u * 8 * 2);
  for (const CommRow& row : report.rows) {
    EXPECT_EQ(row.wrong, 0) << name_of(row.op) << " over " << row.group;
    EXPECT_EQ(row.seconds.size(), 5u);
    EXPECT_EQ(row.ranks, row.group == "all ranks" ? 4 : 2);
  }
  EXPECT_FALSE(any_says(report.findings, "WRONG"));
  EXPECT_EQ(report.links.size(), 6u);
  EXPECT_EQ(report.overlap.size(), 4u);
  for (const auto& [name, overlap] : report.overlap) EXPECT_GT(overlap.both_s(), 0) << name;
  LinkProfile within = profile_of(report.links, LinkKind::within_host);
  EXPECT_EQ(within.links, 6);
  EXPECT_GT(within.latency_s, 0);
  EXPECT_GT(within.bytes_per_s, 0);
  EXPECT_EQ(profile_of(report.links, LinkKind::between_hosts).links, 0);
  std::string text = comm_text(report);
  EXPECT_NE(text.find("dp and tp at once: 2 ranks"), std::string::npos) << text;
  EXPECT_EQ(bench_report_of(report).results.size(), 64u + 12 + 4);
}

TEST(CommBench, ACorruptedCollectiveIsFound) {
  CommReport report = run({{{"dp", 3}}}, [](Faulty& f) {
    if (f.rank() == 1) f.corrupt_from = 2;
  });
  std::set<Collective> wrong;
  for (const CommRow& row : report.rows)
    if (row.wrong > 0) wrong.insert(row.op);
  // Rank 1 has rank 2's data in all of them but a broadcast from 0 and a message from the one before.
  EXPECT_EQ(wrong, (std::set{Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                             Collective::all_to_all}));
  EXPECT_TRUE(any_says(report.findings, "all_reduce over dp of 1024 bytes gives WRONG results") ||
              any_says(report.findings, "all_reduce over dp of 1032 bytes gives WRONG results"))
      << comm_text(report);
}

// Whether some finding has each of `guilty` in it, and none has any of `innocent`.
struct Blame {
  std::vector<std::string> guilty, innocent;

  bool holds(const CommReport& report) const {
    auto said = [&](const std::string& words) { return any_says(report.findings, words); };
    return std::all_of(guilty.begin(), guilty.end(), said) && std::none_of(innocent.begin(), innocent.end(), said);
  }
};

// On a busy machine ranks wait for a core longer than for a small fault, and the wrong one may be blamed: then a larger
// one must be found. Every send takes a twentieth of the fault, because threads that share a cache copy several times
// faster than others and links of equal speed would look uneven.
template <class Plant>
void expect_blamed(const Plant& plant, const Blame& blame) {
  CommReport report;
  for (int64_t microseconds : {4000, 10000, 20000}) {
    report = run({{{"dp", 4}}}, [&](Faulty& f) {
      f.usual = std::chrono::microseconds(microseconds / 20);
      plant(f, std::chrono::microseconds(microseconds));
    });
    if (blame.holds(report)) return;
  }
  FAIL() << comm_text(report);
}

TEST(CommBench, ASlowRankIsNamed) {
  auto plant = [](Faulty& f, std::chrono::microseconds delay) {
    if (f.rank() == 2) f.slow_to = -1, f.delay = delay;
  };
  expect_blamed(plant, {.guilty = {"rank 2 is slow to 3 of 3 others", "rank 2 is the slowest"},
                        .innocent = {"rank 0 is", "rank 1 is", "rank 3 is"}});
}

TEST(CommBench, ASlowLinkIsNamed) {
  auto plant = [](Faulty& f, std::chrono::microseconds delay) {
    if (f.rank() == 1) f.slow_to = 3, f.delay = delay;
  };
  expect_blamed(plant, {.guilty = {"the link 1-3 is slow"}, .innocent = {"link 0-", "link 1-2", "link 2-3"}});
}

// The collectives of an executor: on GPUs these are NCCL's.
TEST(CommBench, AnExecutorsCollectivesAreMeasuredAndRight) {
  Mesh mesh{{{"dp", 2}, {"tp", 2}}};
  CommReport report;
  ThreadHub hub(4, std::chrono::seconds(20));
  for (const RankEnd& end : run_ranks(hub, 4, [&](Transport& transport) {
         CommWorld world(&transport);
         std::unique_ptr<Executor> executor = make_cpu_executor(1, {transport.rank(), &transport});
         CommRequest request = small_request(mesh, transport.rank());
         request.executor = executor.get();
         request.mesh = mesh;
         CommReport own = bench_comm(world, request, {});
         if (transport.rank() == 0) report = own;
       }))
    EXPECT_EQ(end.error, "");
  // Four ops on dp and tp, three on all ranks; two sizes.
  EXPECT_EQ(report.rows.size(), (2u * 4 + 3) * 2) << comm_text(report);
  for (const CommRow& row : report.rows) {
    EXPECT_EQ(row.wrong, 0) << name_of(row.op) << " over " << row.group;
    EXPECT_GT(row.seconds.at(0), 0);
  }
}

TEST(CommBench, StoppedItReportsWhatItHas) {
  std::atomic<int> rows{0};
  Watch watch{.stop = [&] { return rows >= 3; }, .say = [&](const std::string&) { ++rows; }};
  CommReport report = run(
      {{{"dp", 2}}}, [](Faulty&) {}, watch);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.rows.size(), 2u);  // the third was begun
  EXPECT_TRUE(report.links.empty());
}

std::vector<RankLink> even_links(int ranks, int per_host) {
  std::vector<RankLink> links;
  for (int from = 0; from < ranks; ++from)
    for (int to = from + 1; to < ranks; ++to) {
      bool same = from / per_host == to / per_host;
      double latency = same ? 2e-6 : 8e-6, rate = same ? 200e9 : 40e9, large = 1 << 20;
      links.push_back({from, to, latency, rate, same, large, {latency, latency}, {large / rate, large / rate}});
    }
  return links;
}

TEST(Links, EvenOnesAreNotBlamed) {
  EXPECT_TRUE(odd_links(even_links(8, 4)).empty());
  LinkProfile between = profile_of(even_links(8, 4), LinkKind::between_hosts);
  EXPECT_EQ(between.links, 16);
  EXPECT_EQ(between.latency_s, 8e-6);
  EXPECT_EQ(between.bytes_per_s, 40e9);
}

TEST(Links, OneSlowLinkIsNamedByItsEnds) {
  std::vector<RankLink> links = even_links(8, 4);
  for (RankLink& link : links)
    if (link.from == 1 && link.to == 6)
      link.bytes_per_s = 5e9;  // slow beside links between machines, as are all beside those within
  std::vector<std::string> odd = odd_links(links);
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0], "the link 1-6 is slow: 8.0 µs, 5.00 GB/s, where 8.0 µs, 40.00 GB/s are usual");
}

}  // namespace
}  // namespace sextant
