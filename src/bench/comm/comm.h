// bench comm: collectives and messages over groups of ranks, swept over sizes, checked, and timed on every rank.
// Enters: the ranks' transport and the groups; leaves: a row for each op, place and size, the links between ranks, how
// well communication hides behind computing, and sentences about whoever is slow or wrong. All ranks call it together;
// rank 0 has the result.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/comm/comm_call.h"
#include "bench/comm/comm_links.h"
#include "bench/result.h"
#include "bench/stop.h"
#include "exec/executor.h"
#include "mesh/mesh.h"

namespace sextant {

// Ranks that talk to each other. Of "tp" on a mesh every rank is in one of several; of "tp and dp at once" in two.
struct CommGroups {
  std::string name;
  std::vector<std::vector<int>> own;  // this rank's group, or groups that are busy at the same time
  std::vector<int> axes;              // of the mesh
};

// Each axis of the mesh, two of them at once, and everyone.
std::vector<CommGroups> groups_of(const Mesh& mesh, int rank);

struct CommRequest {
  std::vector<CommGroups> groups;
  std::vector<Collective> ops;
  int64_t smallest = 1 << 10, largest = 1 << 24;  // bytes
  int64_t step = 4;                               // each size is this many times the one before
  int calls = 20;                                 // timed, after a fifth as many to warm up
  std::string host;                               // where this rank runs
  // With an executor its own collectives are measured, on this mesh, in place of messages between processors; links and
  // overlap are left out then.
  Executor* executor = nullptr;
  Mesh mesh = {};
};

struct CommRow {
  std::string group;
  int ranks = 0;
  int together = 1;  // groups of each rank that are busy at the same time
  Collective op = Collective::all_reduce;
  CommPlace place = CommPlace::in;
  double bytes = 0;
  std::vector<double> seconds;  // of each call, until its last rank had its result
  std::vector<double> least;    // of each call on the rank that came last, which waited for nobody
  double wrong = 0;             // elements, over all ranks
  int waited_for = -1;          // the rank that the others waited for most
  double waited_share = 0;      // of all waiting
};

struct CommOverlap {
  double bytes = 0;  // of the all-reduce
  double compute_s = 0, comm_s = 0;
  std::vector<double> both;  // seconds of both at once, call by call
  double both_s() const;
  double hidden() const;  // the share of the shorter that disappears behind the longer: 0 to 1
};

struct CommReport {
  int ranks = 1, hosts = 1;
  std::vector<CommRow> rows;
  std::vector<RankLink> links;
  std::map<std::string, CommOverlap> overlap;  // by group
  std::vector<std::string> findings;
  bool interrupted = false;
};

CommReport bench_comm(CommWorld& world, const CommRequest& request, const Watch& watch);

std::string comm_text(const CommReport& report);
// As results of the bench module, to be kept and compared. A result's size holds bytes, ranks and the factor from
// algorithm to bus bandwidth.
BenchReport bench_report_of(const CommReport& report);

}  // namespace sextant
