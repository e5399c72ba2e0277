#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "doctor/checks.h"

namespace sextant {

namespace {

constexpr const char* kMemoryGroup = "memory";
constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
constexpr uint64_t kLeastMemory = 2 * kGiB;
constexpr uint64_t kLeastShared = 64 * kMiB, kUsualShared = kGiB;  // 64 MiB is what containers get by default
constexpr double kIdleHugePages = 0.25;                            // of the machine's memory, reserved and unused

std::string size_text(uint64_t bytes) {
  return human(Bytes{static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX))});
}

std::optional<uint64_t> number_in(const Host& host, const std::string& path) {
  auto text = host.file(path);
  return text ? number_after(*text, "") : std::nullopt;  // "max" holds no number
}

struct GroupLimit {
  uint64_t limit = 0, used = 0;
};

// Of the control group that this process is in: version 2 first, then 1, whose "no limit" is a huge number.
std::optional<GroupLimit> group_limit(const Host& host) {
  std::string own;
  if (auto text = host.file("/proc/self/cgroup"))
    if (size_t at = text->find("0::/"); at != std::string::npos)
      own = text->substr(at + 4, text->find('\n', at) - at - 4);
  for (const std::string& place : {"/sys/fs/cgroup/" + own, std::string("/sys/fs/cgroup")})
    if (auto limit = number_in(host, place + "/memory.max"))
      return GroupLimit{*limit, number_in(host, place + "/memory.current").value_or(0)};
  if (auto limit = number_in(host, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
      limit && *limit < (uint64_t{1} << 60))
    return GroupLimit{*limit, number_in(host, "/sys/fs/cgroup/memory/memory.usage_in_bytes").value_or(0)};
  return std::nullopt;
}

void check_free(const Host& host, std::string_view meminfo, Examination& exam) {
  auto total = number_after(meminfo, "MemTotal:"), available = number_after(meminfo, "MemAvailable:");
  if (!total || !available) return exam.unknown(kMemoryGroup, "memory", "not in /proc/meminfo");
  uint64_t whole = *total * 1024, left = *available * 1024;
  std::string found;
  // The group's use counts cached files that would make room, so its limit is looked at, and its use only as a share.
  if (auto group = group_limit(host); group && group->limit < whole) {
    found = fmt::format(", the control group allows {} of {}", size_text(group->limit), size_text(whole));
    left = std::min(left, group->limit);
    whole = group->limit;
  }
  exam.fact("memory", fmt::format("{} GiB", (whole + kGiB / 2) / kGiB));
  found = fmt::format("{} available of {}{}", size_text(left), size_text(whole), found);
  if (left >= kLeastMemory) return exam.ok(kMemoryGroup, "memory", found);
  exam.add({kMemoryGroup, "memory", Health::warning, found,
            "end what else runs here, or raise the control group's memory limit"});
}

void check_swap(std::string_view meminfo, Examination& exam) {
  auto total = number_after(meminfo, "SwapTotal:"), free = number_after(meminfo, "SwapFree:");
  if (!total || !free) return exam.unknown(kMemoryGroup, "swap", "not in /proc/meminfo");
  if (*total == 0) return exam.ok(kMemoryGroup, "swap", "off");
  uint64_t used = (*total - std::min(*free, *total)) * 1024;
  std::string found = fmt::format("{} of {} in use", size_text(used), size_text(*total * 1024));
  if (used < 64 * kMiB) return exam.ok(kMemoryGroup, "swap", found);
  exam.add({kMemoryGroup, "swap", Health::warning, found,
            "a rank whose memory is swapped out holds up all others: free memory, then swapoff -a"});
}

void check_huge_pages(const Host& host, std::string_view meminfo, Examination& exam) {
  auto mode = host.file("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!mode) {
    exam.unknown(kMemoryGroup, "transparent huge pages", "sys/kernel/mm/transparent_hugepage/enabled cannot be read");
  } else {
    size_t open = mode->find('['), close = mode->find(']');
    std::string chosen = open < close && close != std::string::npos ? mode->substr(open + 1, close - open - 1) : *mode;
    exam.fact("transparent huge pages", chosen);
    if (chosen != "never")
      exam.ok(kMemoryGroup, "transparent huge pages", chosen);
    else
      exam.add({kMemoryGroup, "transparent huge pages", Health::warning, chosen,
                "large arenas are faster with them: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
  }
  uint64_t pages = number_after(meminfo, "HugePages_Free:").value_or(0),
           size = number_after(meminfo, "Hugepagesize:").value_or(0);
  uint64_t total = number_after(meminfo, "MemTotal:").value_or(0);
  std::string found =
      pages == 0 ? "none reserved" : fmt::format("{} reserved and unused", size_text(pages * size * 1024));
  if (total == 0 || static_cast<double>(pages * size) <= kIdleHugePages * static_cast<double>(total))
    return exam.ok(kMemoryGroup, "huge pages", found);
  exam.add({kMemoryGroup, "huge pages", Health::warning, found,
            "no other process can use that memory: lower vm.nr_hugepages"});
}

void check_shared(const Host& host, Examination& exam) {
  auto space = host.space("/dev/shm");
  if (!space) return exam.unknown(kMemoryGroup, "/dev/shm", "missing, or cannot be read");
  exam.fact("/dev/shm", size_text(space->bytes));
  std::string found = fmt::format("{} free of {}", size_text(space->free_bytes), size_text(space->bytes));
  std::string advice =
      "MPI and NCCL talk through it within a machine: docker run --shm-size=8g (or --ipc=host), or remount it larger";
  if (space->free_bytes < kLeastShared) return exam.add({kMemoryGroup, "/dev/shm", Health::failure, found, advice});
  if (space->free_bytes < kUsualShared) return exam.add({kMemoryGroup, "/dev/shm", Health::warning, found, advice});
  exam.ok(kMemoryGroup, "/dev/shm", found);
}

}  // namespace

void check_memory(const Host& host, Examination& exam) {
  auto meminfo = host.file("/proc/meminfo");
  if (!meminfo) {
    exam.unknown(kMemoryGroup, "memory", "proc/meminfo cannot be read");
    exam.unknown(kMemoryGroup, "swap", "proc/meminfo cannot be read");
  } else {
    check_free(host, *meminfo, exam);
    check_swap(*meminfo, exam);
  }
  check_huge_pages(host, meminfo.value_or(""), exam);
  check_shared(host, exam);
}

}  // namespace sextant
