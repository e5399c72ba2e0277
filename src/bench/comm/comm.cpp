#include "bench/comm/comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "bench/comm/comm_device_call.h"
#include "bench/comm/comm_lane.h"
#include "bench/comm/comm_waits.h"
#include "bench/statistics.h"
#include "comm/tags.h"

namespace sextant {

namespace {

constexpr double kBlamed = 3;                 // times what the others are waited for
constexpr double kSmallWait = 5e-6;           // seconds a call: less says nothing
constexpr int64_t kLargeBytes = 1 << 22;      // of a link's message and of an all-reduce beside computing, at most,
constexpr int64_t kLeastOfLink = 1 << 16;     // of the one at least,
constexpr int64_t kLeastOfOverlap = 1 << 20;  // and of the other: to start a lane takes longer than small ones do
constexpr int kOverlapCalls = 5;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct RowPlan {
  const CommRequest& request;
  const CommGroups& groups;
  Collective op;
  CommPlace place;
  int64_t bytes;
};

bool is_possible(const RowPlan& plan) {
  if (!plan.request.executor) return can_be(plan.op, plan.place);
  return plan.place == CommPlace::out && plan.groups.own.size() == 1 &&
         can_be_on_device(plan.op, plan.groups.axes.size());
}

// One collective on each of the groups that this rank is in, at the same time.
class CallTeam {
 public:
  CallTeam(const RowPlan& plan, Transport& transport) {
    int tag = kCollectiveTag;
    for (const std::vector<int>& ranks : plan.groups.own) {
      Member& member = *members_.emplace_back(std::make_unique<Member>(transport, tag));
      if (members_.size() > 1) member.lane = std::make_unique<CommLane>();
      if (plan.request.executor)
        member.call = make_device_call(plan.op, plan.bytes,
                                       {*plan.request.executor, plan.request.mesh, plan.groups.axes, transport.rank()});
      else
        member.call =
            make_host_call(plan.op, plan.place, plan.bytes, group_of_ranks(ranks, transport.rank()), member.channel);
      tag = kCommLaneTag;
    }
  }

  void fill() {
    for (auto& member : members_) member->call->fill();
  }

  double run() {
    if (members_.size() == 1) return members_.front()->call->run();
    auto start = std::chrono::steady_clock::now();
    for (size_t i = 1; i < members_.size(); ++i) members_[i]->lane->start([this, i] { members_[i]->call->run(); });
    members_.front()->call->run();
    for (size_t i = 1; i < members_.size(); ++i) members_[i]->lane->wait();
    return seconds_since(start);
  }

  int64_t wrong() const {
    int64_t wrong = 0;
    for (const auto& member : members_) wrong += member->call->wrong();
    return wrong;
  }

  std::vector<double> waited() const {
    std::vector<double> waited = members_.front()->transport.waited();
    for (size_t i = 1; i < members_.size(); ++i)
      for (size_t rank = 0; rank < waited.size(); ++rank) waited[rank] += members_[i]->transport.waited()[rank];
    return waited;
  }
  void forget() {
    for (auto& member : members_) member->transport.forget();
  }

  double bytes() const { return members_.front()->call->bytes(); }

 private:
  struct Member {
    Member(Transport& inner, int tag) : transport(inner), channel{transport, tag} {}
    WatchedTransport transport;
    Channel channel;
    std::unique_ptr<CommCall> call;
    std::unique_ptr<CommLane> lane;  // of all but the first; ends before what it works with
  };
  std::vector<std::unique_ptr<Member>> members_;
};

// Whom all others waited for, if one rank stands out.
void name_slowest(CommWorld& world, const std::vector<double>& waited, int calls, CommRow& row) {
  std::vector<double> all = world.gather(waited);
  size_t n = static_cast<size_t>(world.size());
  std::vector<double> by_rank(n, 0);
  for (size_t rank = 0; rank < n; ++rank)
    for (size_t other = 0; other < n; ++other) by_rank[other] += all[rank * n + other];
  auto most = std::max_element(by_rank.begin(), by_rank.end());
  double total = std::accumulate(by_rank.begin(), by_rank.end(), 0.0);
  double usual = quantile_of(by_rank, 0.5);
  if (n < 3 || total <= 0 || *most < kBlamed * usual || *most < kSmallWait * calls * static_cast<double>(n - 1)) return;
  row.waited_for = static_cast<int>(most - by_rank.begin());
  row.waited_share = *most / total;
}

// Nothing when it was stopped before its first call.
std::optional<CommRow> measure_row(CommWorld& world, const RowPlan& plan, const Watch& watch) {
  CallTeam team(plan, *world.transport());
  CommRow row{.group = plan.groups.name,
              .ranks = static_cast<int>(plan.groups.own.front().size()),
              .together = static_cast<int>(plan.groups.own.size()),
              .op = plan.op,
              .place = plan.place,
              .bytes = team.bytes()};
  std::vector<double> own;
  int64_t wrong = 0;
  int calls = plan.request.calls, warm = std::max(1, calls / 5);
  for (int i = 0; i < warm + calls && world.agree(!watch.stop()); ++i) {
    if (i == warm) team.forget();
    team.fill();
    world.meet();
    double seconds = team.run();
    if (i >= warm) own.push_back(seconds);
    if (i == 0 || i + 1 == warm + calls) wrong += team.wrong();
  }
  if (own.empty()) return std::nullopt;
  std::vector<double> all = world.gather(own);
  for (size_t call = 0; call < own.size(); ++call) {
    std::vector<double> by_rank;
    for (size_t rank = 0; rank < static_cast<size_t>(world.size()); ++rank)
      by_rank.push_back(all[rank * own.size() + call]);
    auto [least, most] = std::minmax_element(by_rank.begin(), by_rank.end());
    row.seconds.push_back(*most);
    row.least.push_back(*least);
  }
  row.wrong = world.sum(static_cast<double>(wrong));
  name_slowest(world, team.waited(), calls, row);
  return row;
}

// Arithmetic that stays in registers, so that it competes for the core alone.
double compute(int64_t rounds) {
  double x = 1;
  for (int64_t i = 0; i < rounds; ++i) x = x * 0.999999 + 1e-9;
  return x;
}

// Keeps `compute` from being dropped: its result is looked at.
double timed_compute(int64_t rounds) {
  auto start = std::chrono::steady_clock::now();
  volatile double kept = compute(rounds);
  static_cast<void>(kept);
  return seconds_since(start);
}

CommOverlap measure_overlap(CommWorld& world, const CommRequest& request, const CommGroups& groups) {
  int64_t bytes = std::clamp(request.largest, kLeastOfOverlap, kLargeBytes);
  CallTeam team({request, groups, Collective::all_reduce, CommPlace::in, bytes}, *world.transport());
  auto timed = [&](auto body) {
    std::vector<double> times;
    for (int i = 0; i < kOverlapCalls; ++i) {
      team.fill();
      world.meet();
      auto start = std::chrono::steady_clock::now();
      body();
      times.push_back(world.largest(seconds_since(start)));
    }
    return times;
  };
  CommOverlap overlap{.bytes = team.bytes()};
  overlap.comm_s = quantile_of(timed([&] { team.run(); }), 0.5);
  // As much computing as the communication takes, the same on every rank.
  int64_t rounds = std::max<int64_t>(
      1000, static_cast<int64_t>(1e6 * overlap.comm_s / std::max(1e-9, world.largest(timed_compute(1'000'000)))));
  overlap.compute_s = quantile_of(timed([&] { timed_compute(rounds); }), 0.5);
  CommLane lane;
  overlap.both = timed([&] {
    lane.start([&] { team.run(); });
    timed_compute(rounds);
    lane.wait();
  });
  return overlap;
}

int hosts_of(CommWorld& world, const std::string& host) {
  std::vector<double> all = hosts_by_rank(world, host);
  return static_cast<int>(std::set<double>(all.begin(), all.end()).size());
}

void report_wrong_and_slow_results(CommReport& report) {
  std::map<int, std::vector<const CommRow*>> blamed;
  for (const CommRow& row : report.rows) {
    if (row.wrong > 0)
      report.findings.push_back(fmt::format("{} over {} of {:.0f} bytes gives WRONG results: {:.0f} elements",
                                            bench_name(row.op), row.group, row.bytes, row.wrong));
    if (row.waited_for >= 0) blamed[row.waited_for].push_back(&row);
  }
  for (const auto& [rank, rows] : blamed)
    if (2 * rows.size() > report.rows.size())
      report.findings.push_back(
          fmt::format("rank {} is the slowest: the others waited for it most in {} of {} measurements", rank,
                      rows.size(), report.rows.size()));
}

}  // namespace

double CommOverlap::both_s() const {
  return quantile_of(both, 0.5);
}

double CommOverlap::hidden() const {
  double shorter = std::min(compute_s, comm_s);
  return shorter > 0 ? std::clamp((compute_s + comm_s - both_s()) / shorter, 0.0, 1.0) : 0;
}

std::vector<CommGroups> groups_of(const Mesh& mesh, int rank) {
  std::vector<CommGroups> all;
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (mesh.size(axis) > 1) axes.push_back(axis);
  for (int axis : axes) all.push_back({mesh.name(axis), {group_of(mesh, rank, std::vector<int>{axis})}, {axis}});
  for (size_t a = 0; a < axes.size(); ++a)
    for (size_t b = a + 1; b < axes.size(); ++b)
      all.push_back({fmt::format("{} and {} at once", all[a].name, all[b].name),
                     {all[a].own.front(), all[b].own.front()},
                     {axes[a], axes[b]}});
  if (axes.size() != 1) {
    std::vector<int> everyone(static_cast<size_t>(mesh.world_size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    all.push_back({"all ranks", {everyone}, axes});
  }
  return all;
}

CommReport bench_comm(CommWorld& world, const CommRequest& request, const Watch& watch) {
  CommReport report{.ranks = world.size(), .hosts = hosts_of(world, request.host)};
  auto go_on = [&](const std::string& line) {
    report.interrupted = report.interrupted || !world.agree(!watch.stop());
    if (!report.interrupted && world.rank() == 0) watch.say(line);
    return !report.interrupted;
  };
  for (const CommGroups& groups : request.groups)
    for (Collective op : request.ops)
      for (CommPlace place : {CommPlace::in, CommPlace::out})
        for (int64_t bytes = request.smallest; bytes <= request.largest; bytes *= request.step) {
          RowPlan plan{request, groups, op, place, bytes};
          if (!is_possible(plan) || !go_on(fmt::format("{} over {}, {} bytes", bench_name(op), groups.name, bytes)))
            break;
          if (std::optional<CommRow> row = measure_row(world, plan, watch)) report.rows.push_back(std::move(*row));
        }
  if (!request.executor) {
    for (const CommGroups& groups : request.groups)
      if (go_on("overlap over " + groups.name)) report.overlap[groups.name] = measure_overlap(world, request, groups);
    if (!report.interrupted) {
      size_t n = static_cast<size_t>(std::min(world.size(), kMostLinkRanks));
      report.links =
          measure_links(world, {request.host, std::clamp(request.largest, kLeastOfLink, kLargeBytes)}, watch);
      report.interrupted = report.links.size() < n * (n - 1) / 2;
    }
    if (world.size() > kMostLinkRanks)
      report.findings.push_back(fmt::format("links were measured between the first {} ranks only", kMostLinkRanks));
  }
  report_wrong_and_slow_results(report);
  for (std::string& sentence : odd_links(report.links)) report.findings.push_back(std::move(sentence));
  return report;
}

}  // namespace sextant
