// Processor, disks and clock.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "doctor/checks.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kLeastRoom = uint64_t{1} << 30;
constexpr double kLowShare = 0.05;

void check_governor(const Host& host, Examination& exam) {
  std::set<std::string> governors;
  for (int cpu = 0;; ++cpu) {
    auto governor = host.file(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu));
    if (!governor) break;
    governors.insert(*governor);
  }
  if (governors.empty()) return exam.unknown("processor", "governor", "unavailable, as in most virtual machines");
  std::string found = fmt::format("{}", fmt::join(governors, ", "));
  exam.fact("governor", found);
  // Drivers that choose frequencies themselves call their usual, dynamic mode powersave.
  std::string driver = host.file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver").value_or("");
  bool dynamic = driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate");
  auto fine = [&](const std::string& g) {
    return g == "performance" || g == "schedutil" || (dynamic && g == "powersave");
  };
  if (std::all_of(governors.begin(), governors.end(), fine)) return exam.ok("processor", "governor", found);
  exam.add({"processor", "governor", Health::warning, found,
            "cores are slow to speed up: cpupower frequency-set -g performance"});
}

void check_numa(const Host& host, Examination& exam) {
  auto nodes = host.file("/sys/devices/system/node/online");
  if (!nodes) return exam.unknown("processor", "NUMA", "sys/devices/system/node cannot be read");
  bool several = nodes->find_first_of("-,") != std::string::npos;
  std::string found = several ? fmt::format("nodes {}", *nodes) : "one node";
  auto balancing = host.file("/proc/sys/kernel/numa_balancing");
  if (!several || !balancing || *balancing == "0") return exam.ok("processor", "NUMA", found);
  exam.add({"processor", "NUMA", Health::warning, found + ", the kernel moves pages between them",
            "bind ranks to nodes (mpirun --bind-to numa) and echo 0 > /proc/sys/kernel/numa_balancing"});
}

struct Room {
  std::string name;
  uint64_t whole = 0, left = 0, least = 0;
  std::string found, advice;
};

void judge_room(const Room& room, Examination& exam) {
  bool low = static_cast<double>(room.left) < kLowShare * static_cast<double>(room.whole);
  if (room.left < room.least) return exam.add({"disk", room.name, Health::failure, room.found, room.advice});
  if (low) return exam.add({"disk", room.name, Health::warning, room.found, room.advice});
  exam.ok("disk", room.name, room.found);
}

}  // namespace

void check_processor(const Host& host, Examination& exam) {
  if (auto info = host.file("/proc/cpuinfo"))
    if (size_t at = info->find("model name"); at != std::string::npos) {
      size_t from = info->find(':', at), to = info->find('\n', at);
      if (from < to) exam.fact("processor", info->substr(from + 2, to - from - 2));
    }
  if (auto cores = host.file("/sys/devices/system/cpu/online")) exam.fact("cores", *cores);
  check_governor(host, exam);
  check_numa(host, exam);
}

void check_disks(const Host& host, Examination& exam) {
  for (const fs::path& directory : host.directories) {
    std::string name = directory.string();
    auto space = host.space(directory);
    if (!space) {
      exam.add({"disk", name, Health::failure, "cannot be read", "make the directory, or mount what should be there"});
      continue;
    }
    auto size = [](uint64_t bytes) { return human(Bytes{static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX))}); };
    judge_room({name, space->bytes, space->free_bytes, kLeastRoom,
                fmt::format("{} free of {}", size(space->free_bytes), size(space->bytes)),
                "a checkpoint that does not fit ends the run: remove old runs, or give another directory"},
               exam);
    if (space->inodes == 0) continue;
    judge_room({name + " inodes", space->inodes, space->free_inodes, 1000,
                fmt::format("{} free of {}", human_count(static_cast<int64_t>(space->free_inodes)),
                            human_count(static_cast<int64_t>(space->inodes))),
                "files cannot be made though bytes are free: remove small files, or give another directory"},
               exam);
  }
}

void check_clock(const Host& host, Examination& exam) {
  std::optional<bool> kept = host.clock_is_kept();
  if (!kept) return exam.unknown("clock", "clock sync", "unavailable");
  if (*kept) return exam.ok("clock", "clock sync", "yes");
  exam.add(
      {"clock", "clock sync", Health::warning, "no NTP service",
       "logs of several machines will not align: start chronyd; in a virtual machine, check whether the host keeps the "
       "clock"});
}

}  // namespace sextant
