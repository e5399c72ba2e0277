#include "bench/comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <numeric>

#include "bench/comm_device_call.h"
#include "bench/comm_waits.h"
#include "bench/statistics.h"
#include "comm/tags.h"

namespace sextant {

namespace {

constexpr double kBlamed = 3;        // times what the others are waited for
constexpr double kSmallWait = 5e-6;  // seconds a call: less says nothing
constexpr int64_t kLargeBytes = 1 << 22,
                  kLargeEnough = 1 << 16;  // of an all-reduce beside computing, of a link's message
constexpr int kOverlapCalls = 5;

int64_t large_bytes(const CommRequest& request) {
  return std::clamp(request.largest, kLargeEnough, kLargeBytes);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct RowPlan {
  const CommRequest& request;
  const CommGroups& groups;
  CommOp op;
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
    std::vector<std::future<double>> others;
    for (size_t i = 1; i < members_.size(); ++i)
      others.push_back(std::async(std::launch::async, [&, i] { return members_[i]->call->run(); }));
    members_.front()->call->run();
    for (auto& other : others) other.get();
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
  };
  std::vector<std::unique_ptr<Member>> members_;
};

// Whom all others waited for, if anybody stands out.
void blame(CommWorld& world, const std::vector<double>& waited, int calls, CommRow& row) {
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

CommRow measure_row(CommWorld& world, const RowPlan& plan) {
  CallTeam team(plan, *world.transport());
  CommRow row{.group = plan.groups.name,
              .ranks = static_cast<int>(plan.groups.own.front().size()),
              .op = plan.op,
              .place = plan.place,
              .bytes = team.bytes()};
  std::vector<double> own;
  int64_t wrong = 0;
  int calls = plan.request.calls, warm = std::max(1, calls / 5);
  for (int i = 0; i < warm + calls; ++i) {
    if (i == warm) team.forget();
    team.fill();
    world.meet();
    double seconds = team.run();
    if (i >= warm) own.push_back(seconds);
    if (i == 0 || i + 1 == warm + calls) wrong += team.wrong();
  }
  std::vector<double> all = world.gather(own);
  for (size_t call = 0; call < own.size(); ++call) {
    double last = 0;
    for (size_t rank = 0; rank < static_cast<size_t>(world.size()); ++rank)
      last = std::max(last, all[rank * own.size() + call]);
    row.seconds.push_back(last);
  }
  row.wrong = world.sum(static_cast<double>(wrong));
  blame(world, team.waited(), calls, row);
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
  CallTeam team({request, groups, CommOp::all_reduce, CommPlace::in, large_bytes(request)}, *world.transport());
  auto timed = [&](auto body) {
    std::vector<double> times;
    for (int i = 0; i < kOverlapCalls; ++i) {
      team.fill();
      world.meet();
      auto start = std::chrono::steady_clock::now();
      body();
      times.push_back(world.largest(seconds_since(start)));
    }
    return quantile_of(times, 0.5);
  };
  CommOverlap overlap{.bytes = team.bytes()};
  overlap.comm_s = timed([&] { team.run(); });
  // As much computing as the communication takes, the same on every rank.
  int64_t rounds = std::max<int64_t>(
      1000, static_cast<int64_t>(1e6 * overlap.comm_s / std::max(1e-9, world.largest(timed_compute(1'000'000)))));
  overlap.compute_s = timed([&] { timed_compute(rounds); });
  overlap.both_s = timed([&] {
    auto lane = std::async(std::launch::async, [&] { team.run(); });
    timed_compute(rounds);
    lane.get();
  });
  return overlap;
}

void tell_wrong_and_slow(CommReport& report) {
  std::map<int, std::vector<const CommRow*>> blamed;
  for (const CommRow& row : report.rows) {
    if (row.wrong > 0)
      report.findings.push_back(fmt::format("{} over {} of {:.0f} bytes gives WRONG results: {:.0f} elements",
                                            name_of(row.op), row.group, row.bytes, row.wrong));
    if (row.waited_for >= 0) blamed[row.waited_for].push_back(&row);
  }
  for (const auto& [rank, rows] : blamed)
    if (2 * rows.size() > report.rows.size())
      report.findings.push_back(
          fmt::format("rank {} is the slowest: the others waited for it most in {} of {} measurements", rank,
                      rows.size(), report.rows.size()));
}

}  // namespace

double CommOverlap::hidden() const {
  double shorter = std::min(compute_s, comm_s);
  return shorter > 0 ? std::clamp((compute_s + comm_s - both_s) / shorter, 0.0, 1.0) : 0;
}

std::vector<CommGroups> groups_of(const Mesh& mesh, int rank) {
  std::vector<CommGroups> all;
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (mesh.size(axis) > 1) axes.push_back(axis);
  for (int axis : axes)
    all.push_back({mesh.axes[static_cast<size_t>(axis)].name, {group_of(mesh, rank, {axis})}, {axis}});
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
  CommReport report;
  auto go_on = [&](const std::string& line) {
    report.interrupted = report.interrupted || !world.agree(!watch.stop());
    if (!report.interrupted && world.rank() == 0) watch.say(line);
    return !report.interrupted;
  };
  for (const CommGroups& groups : request.groups)
    for (CommOp op : request.ops)
      for (CommPlace place : {CommPlace::in, CommPlace::out})
        for (int64_t bytes = request.smallest; bytes <= request.largest; bytes *= request.step) {
          RowPlan plan{request, groups, op, place, bytes};
          if (!is_possible(plan) || !go_on(fmt::format("{} over {}, {} bytes", name_of(op), groups.name, bytes))) break;
          report.rows.push_back(measure_row(world, plan));
        }
  if (!request.executor) {
    for (const CommGroups& groups : request.groups)
      if (go_on("overlap over " + groups.name)) report.overlap[groups.name] = measure_overlap(world, request, groups);
    if (!report.interrupted) report.links = measure_links(world, {request.host, large_bytes(request)}, watch);
    if (world.size() > kMostLinkRanks)
      report.findings.push_back(fmt::format("links were measured between the first {} ranks only", kMostLinkRanks));
  }
  tell_wrong_and_slow(report);
  for (std::string& sentence : odd_links(report.links)) report.findings.push_back(std::move(sentence));
  return report;
}

}  // namespace sextant
