#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "doctor/checks.h"

namespace sextant {

namespace {

constexpr const char* kKernelLogGroup = "kernel log";

struct XidRange {
  int first, last;
};
// Numbers by which the driver reports failing hardware; the others are mostly programs' own mistakes.
constexpr std::array kHardwareXids = {XidRange{48, 48},   XidRange{56, 58},  XidRange{62, 64}, XidRange{68, 77},
                                      XidRange{79, 86},   XidRange{88, 89},  XidRange{92, 92}, XidRange{94, 105},
                                      XidRange{110, 120}, XidRange{122, 125}};

bool is_hardware(int xid) {
  return std::any_of(kHardwareXids.begin(), kHardwareXids.end(),
                     [xid](XidRange r) { return r.first <= xid && xid <= r.last; });
}

// "NVRM: Xid (PCI:0000:1b:00): 79, pid=…": how often each number came.
std::map<int, int> xids_in(std::string_view log) {
  std::map<int, int> counts;
  for (size_t at = log.find("NVRM: Xid"); at != std::string_view::npos; at = log.find("NVRM: Xid", at + 1)) {
    size_t number = log.find("): ", at);
    if (number == std::string_view::npos || number > log.find('\n', at)) continue;
    if (auto xid = number_after(log.substr(number, 12), "): ")) ++counts[static_cast<int>(*xid)];
  }
  return counts;
}

int lines_with(std::string_view log, std::string_view words) {
  int count = 0;
  for (size_t at = log.find(words); at != std::string_view::npos; at = log.find(words, at + words.size())) ++count;
  return count;
}

void check_xids(std::string_view log, Examination& exam) {
  std::map<int, int> counts = xids_in(log);
  if (counts.empty()) return exam.ok(kKernelLogGroup, "Xid errors", "none since boot");
  std::vector<std::string> parts;
  bool hardware = false;
  for (const auto& [xid, count] : counts) {
    parts.push_back(fmt::format("{} ({} ×)", xid, count));
    hardware = hardware || is_hardware(xid);
  }
  exam.add({kKernelLogGroup, "Xid errors", hardware ? Health::failure : Health::warning,
            fmt::format("{}", fmt::join(parts, ", ")),
            hardware ? "a GPU or its link failed: drain this machine, reset or replace the card"
                     : "programs on a GPU failed: reset the card when it happens again with other programs"});
}

}  // namespace

void check_kernel_log(const Host& host, const GpuReport& report, Examination& exam) {
  std::optional<std::string> log = host.kernel_log();
  if (!log)
    return exam.unknown(
        kKernelLogGroup, "errors",
        "/dev/kmsg may not be read; as root, `dmesg | grep -E 'Xid|Hardware Error|Out of memory'` shows it");
  if (!report.gpus.empty()) check_xids(*log, exam);
  if (int count = lines_with(*log, "[Hardware Error]"); count > 0)
    exam.add({kKernelLogGroup, "hardware errors", Health::failure, fmt::format("{} lines of them", count),
              "memory or processor failed: read dmesg, have the machine looked at"});
  else
    exam.ok(kKernelLogGroup, "hardware errors", "none since boot");
  if (int count = lines_with(*log, "Out of memory: Killed"); count > 0)
    exam.add({kKernelLogGroup, "out of memory", Health::warning,
              fmt::format("{} processes were killed for memory since boot", count),
              "read dmesg for which; give runs more memory or smaller batches"});
  else
    exam.ok(kKernelLogGroup, "out of memory", "no OOM kills since boot");
}

}  // namespace sextant
