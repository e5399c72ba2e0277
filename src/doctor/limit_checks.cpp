#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "doctor/checks.h"

namespace sextant {

namespace {

constexpr const char* kLimitGroup = "limits";
constexpr uint64_t kLeastFiles = 256, kUsualFiles = 4096;
constexpr uint64_t kUsualProcesses = 4096;

std::string count_text(uint64_t n) {
  return n == kUnlimited ? "unlimited" : human_count(static_cast<int64_t>(std::min<uint64_t>(n, INT64_MAX)));
}

void check_files(const Host& host, Examination& exam) {
  auto limit = host.limit(LimitKind::open_files);
  if (!limit) return exam.unknown(kLimitGroup, "open files", "unavailable");
  exam.fact("open files", count_text(limit->soft));
  std::string advice = fmt::format("every connection to a rank and every open file counts: ulimit -n {}",
                                   limit->hard >= 65536 ? "65536" : "65536 (the hard limit must be raised first)");
  if (limit->soft >= kUsualFiles) return exam.ok(kLimitGroup, "open files", count_text(limit->soft));
  exam.add({kLimitGroup, "open files", limit->soft < kLeastFiles ? Health::failure : Health::warning,
            count_text(limit->soft), advice});
}

void check_processes(const Host& host, Examination& exam) {
  auto limit = host.limit(LimitKind::processes);
  if (!limit) return exam.unknown(kLimitGroup, "processes and threads", "unavailable");
  if (limit->soft >= kUsualProcesses) return exam.ok(kLimitGroup, "processes and threads", count_text(limit->soft));
  exam.add({kLimitGroup, "processes and threads", Health::warning, count_text(limit->soft),
            "each rank has a thread for every core, and MPI and NCCL have their own: raise ulimit -u"});
}

void check_locked_memory(const Host& host, Examination& exam) {
  auto limit = host.limit(LimitKind::locked_memory);
  if (!limit) return exam.unknown(kLimitGroup, "locked memory", "unavailable");
  std::string found = limit->soft == kUnlimited ? "unlimited" : human(Bytes{static_cast<int64_t>(limit->soft)});
  exam.fact("locked memory", found);
  if (limit->soft == kUnlimited) return exam.ok(kLimitGroup, "locked memory", found);
  if (!host.holds_any("/sys/class/infiniband"))
    return exam.ok(kLimitGroup, "locked memory", found + " (no RDMA card here needs more)");
  exam.add(
      {kLimitGroup, "locked memory", Health::failure, found,
       "RDMA cards pin the memory they send from: ulimit -l unlimited, also for the daemon that starts the ranks"});
}

}  // namespace

void check_limits(const Host& host, Examination& exam) {
  check_files(host, exam);
  check_processes(host, exam);
  check_locked_memory(host, exam);
}

}  // namespace sextant
