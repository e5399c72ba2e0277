// Every check finds its planted fault, and nothing else changes; a machine in good health has nothing to report.
#include "doctor/checks.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "planted_host.h"

namespace sextant {
namespace {

using Plant = std::function<void(PlantedHost&)>;

struct Fault {
  const char* what;
  Plant plant;
  const char* check;  // "group/name"
  Health health;
  const char* words;  // part of what is found
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  return out << fault.what;
}

std::set<std::pair<std::string, std::string>> complaints_of(const Examination& exam) {
  std::set<std::pair<std::string, std::string>> complaints;
  for (const Finding& f : exam.findings)
    if (f.health != Health::ok) complaints.emplace(f.group + "/" + f.name, name_of(f.health));
  return complaints;
}

TEST(Doctor, AHealthyMachineHasNothingToReport) {
  PlantedHost planted;
  Examination exam = examine(planted.host);
  EXPECT_TRUE(complaints_of(exam).empty()) << testing::PrintToString(complaints_of(exam));
  EXPECT_GE(exam.findings.size(), 24u);
  EXPECT_GE(exam.facts.size(), 14u);
  for (const Finding& f : exam.findings) EXPECT_TRUE(f.advice.empty()) << f.name;
}

class PlantedFault : public testing::TestWithParam<Fault> {};

TEST_P(PlantedFault, IsNamedAndNothingElseIs) {
  PlantedHost planted;
  GetParam().plant(planted);
  Examination exam = examine(planted.host);
  std::set<std::pair<std::string, std::string>> expected{{GetParam().check, std::string(name_of(GetParam().health))}};
  EXPECT_EQ(complaints_of(exam), expected);
  for (const Finding& f : exam.findings) {
    if (f.health == Health::ok) continue;
    EXPECT_NE(f.found.find(GetParam().words), std::string::npos) << f.found;
    EXPECT_EQ(f.advice.empty(), f.health == Health::unknown) << f.name;
  }
}

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

const Fault kFaults[] = {
    {"little memory",
     [](PlantedHost& h) {
       h.write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 900000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
     },
     "memory/memory", Health::warning, "available of 64.00 GiB"},
    {"a tight control group", [](PlantedHost& h) { h.write("sys/fs/cgroup/job/memory.max", "1073741824\n"); },
     "memory/memory", Health::warning, "the control group allows 1.00 GiB"},
    {"a tight control group of version 1",
     [](PlantedHost& h) {
       h.remove("sys/fs/cgroup/job");
       h.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
     },
     "memory/memory", Health::warning, "1.00 GiB"},
    {"swapping",
     [](PlantedHost& h) {
       h.write("proc/meminfo",
               "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\nSwapTotal: 8388608 kB\nSwapFree: 4194304 kB\n");
     },
     "memory/swap", Health::warning, "4.00 GiB of 8.00 GiB in use"},
    {"no transparent huge pages",
     [](PlantedHost& h) { h.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"); },
     "memory/transparent huge pages", Health::warning, "never"},
    {"idle huge pages",
     [](PlantedHost& h) {
       h.write("proc/meminfo",
               "MemTotal: 67108864 kB\nMemAvailable: 20000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nHugePages_Free: "
               "16384\nHugepagesize: 2048 kB\n");
     },
     "memory/huge pages", Health::warning, "32.00 GiB reserved and unused"},
    {"a tiny /dev/shm",
     [](PlantedHost& h) {
       h.spaces["/dev/shm"] = {64 * kMiB, 60 * kMiB, 0, 0};
     },
     "memory//dev/shm", Health::failure, "60.00 MiB free of 64.00 MiB"},
    {"a small /dev/shm",
     [](PlantedHost& h) {
       h.spaces["/dev/shm"] = {512 * kMiB, 512 * kMiB, 0, 0};
     },
     "memory//dev/shm", Health::warning, "512.00 MiB"},
    {"few open files",
     [](PlantedHost& h) {
       h.limits[LimitKind::open_files] = {1024, 1 << 20};
     },
     "limits/open files", Health::warning, "1,024"},
    {"hardly any open files",
     [](PlantedHost& h) {
       h.limits[LimitKind::open_files] = {64, 64};
     },
     "limits/open files", Health::failure, "64"},
    {"few processes",
     [](PlantedHost& h) {
       h.limits[LimitKind::processes] = {100, 100};
     },
     "limits/processes and threads", Health::warning, "100"},
    {"little locked memory",
     [](PlantedHost& h) {
       h.limits[LimitKind::locked_memory] = {64 << 10, 64 << 10};
     },
     "limits/locked memory", Health::failure, "64.00 KiB"},
    {"a slow governor",
     [](PlantedHost& h) { h.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"); },
     "processor/governor", Health::warning, "performance, powersave"},
    {"pages on the move", [](PlantedHost& h) { h.write("proc/sys/kernel/numa_balancing", "1\n"); }, "processor/NUMA",
     Health::warning, "nodes 0-1"},
    {"a full disk", [](PlantedHost& h) { h.spaces["/runs"].free_bytes = 10 * kMiB; }, "disk//runs", Health::failure,
     "10.00 MiB free of 1000.00 GiB"},
    {"an almost full disk", [](PlantedHost& h) { h.spaces["/tmp"].free_bytes = 3 * kGiB; }, "disk//tmp",
     Health::warning, "3.00 GiB free"},
    {"no inodes", [](PlantedHost& h) { h.spaces["/runs"].free_inodes = 3; }, "disk//runs inodes", Health::failure,
     "3 free of 1,000,000"},
    {"no directory", [](PlantedHost& h) { h.spaces.erase("/runs"); }, "disk//runs", Health::failure, "cannot be read"},
    {"a clock without NTP", [](PlantedHost& h) { h.clock_is_kept = false; }, "clock/clock sync", Health::warning,
     "no NTP service"},
    {"ECC off", [](PlantedHost& h) { h.gpus.gpus[1].ecc = false; }, "gpu/memory errors", Health::warning,
     "GPU 1: ECC is off"},
    {"memory errors", [](PlantedHost& h) { h.gpus.gpus[0].uncorrected_errors = 3; }, "gpu/memory errors",
     Health::failure, "GPU 0: 3 uncorrected"},
    {"a bad row", [](PlantedHost& h) { h.gpus.gpus[1].remaps->failed = true; }, "gpu/memory rows", Health::failure,
     "GPU 1"},
    {"a row to be replaced", [](PlantedHost& h) { h.gpus.gpus[1].remaps->pending = true; }, "gpu/memory rows",
     Health::warning, "next reset"},
    {"a link down",
     [](PlantedHost& h) {
       h.gpus.gpus[1].links = NvLinks{17, 1, 0};
     },
     "gpu/NVLink", Health::failure, "17 links up where others have 18"},
    {"link errors", [](PlantedHost& h) { h.gpus.gpus[0].links->errors = 77; }, "gpu/NVLink", Health::warning,
     "77 link errors"},
    {"half the lanes", [](PlantedHost& h) { h.gpus.gpus[0].pcie->width = 8; }, "gpu/PCIe", Health::warning,
     "5 × 8 lanes of 5 × 16"},
    {"an old PCIe generation while busy", [](PlantedHost& h) { h.gpus.gpus[0].pcie->generation = 3; }, "gpu/PCIe",
     Health::warning, "generation 3"},
    {"heat", [](PlantedHost& h) { h.gpus.gpus[1].slowed_by = kThermalHardware | kHardwareSlowdown; }, "gpu/clocks",
     Health::warning, "GPU 1: slowed by heat"},
    {"another kind of card", [](PlantedHost& h) { h.gpus.gpus[1].vbios = "95.00"; }, "gpu/cards", Health::warning,
     "VBIOS 95.00"},
    {"a toolkit beyond the driver", [](PlantedHost& h) { h.versions["cuda"] = "13.0"; }, "libraries/CUDA",
     Health::failure, "13.0, but the driver serves no more than 12.8"},
    {"an old NCCL", [](PlantedHost& h) { h.versions["nccl"] = "2.10.3"; }, "libraries/NCCL", Health::failure, "2.10.3"},
    {"no NCCL", [](PlantedHost& h) { h.versions.erase("nccl"); }, "libraries/NCCL", Health::failure,
     "cannot be loaded"},
    {"a hardware Xid",
     [](PlantedHost& h) { *h.log += "4,2,0,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"; },
     "kernel log/Xid errors", Health::failure, "79 (1 ×)"},
    {"a program's Xid",
     [](PlantedHost& h) {
       *h.log += "4,2,0,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=1\n4,3,0,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=2\n";
     },
     "kernel log/Xid errors", Health::warning, "31 (2 ×)"},
    {"machine checks", [](PlantedHost& h) { *h.log += "2,9,0,-;mce: [Hardware Error]: Machine check events logged\n"; },
     "kernel log/hardware errors", Health::failure, "1 lines"},
    {"killed for memory", [](PlantedHost& h) { *h.log += "3,9,0,-;Out of memory: Killed process 77 (sextant)\n"; },
     "kernel log/out of memory", Health::warning, "1 processes"},
    {"a log that may not be read", [](PlantedHost& h) { h.log.reset(); }, "kernel log/errors", Health::unknown,
     "/dev/kmsg may not be read"},
    {"no governor, as in a virtual machine", [](PlantedHost& h) { h.remove("sys/devices/system/cpu/cpu0/cpufreq"); },
     "processor/governor", Health::unknown, "virtual"},
};

INSTANTIATE_TEST_SUITE_P(Each, PlantedFault, testing::ValuesIn(kFaults), [](const auto& info) {
  std::string name;
  for (char c : std::string(info.param.what)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Doctor, WithoutGpuOneLineSaysSo) {
  PlantedHost planted;
  planted.gpus = {.problem = "no NVIDIA driver on this machine"};
  Examination exam = examine(planted.host);
  EXPECT_TRUE(complaints_of(exam).empty());
  int lines = 0;
  for (const Finding& f : exam.findings) lines += f.group == "gpu";
  EXPECT_EQ(lines, 1);
}

// An idle card's link slows down to save power: no fault.
TEST(Doctor, AnIdleLinkMayBeSlow) {
  PlantedHost planted;
  planted.gpus.gpus[0].pcie->generation = 1;
  planted.gpus.gpus[0].slowed_by = kGpuIdle;
  EXPECT_TRUE(complaints_of(examine(planted.host)).empty());
}

TEST(Doctor, WhatCannotBeReadIsSaidAndFailsNothing) {
  PlantedHost planted;
  for (const char* gone : {"proc", "sys"}) planted.remove(gone);
  planted.spaces.erase("/dev/shm");
  planted.log.reset();
  planted.clock_is_kept.reset();
  planted.host.limit = [](LimitKind) { return std::optional<Limit>(); };
  planted.gpus.gpus = {GpuFacts{.name = "GPU"}};
  Examination exam = examine(planted.host);
  int unknown = 0;
  for (const Finding& f : exam.findings) {
    EXPECT_TRUE(f.health == Health::ok || f.health == Health::unknown) << f.group << "/" << f.name << ": " << f.found;
    unknown += f.health == Health::unknown;
  }
  EXPECT_GE(unknown, 14);
}

// The real machine is asked without rights and without a crash.
TEST(Doctor, ThisMachineCanBeExamined) {
  Examination exam = examine(this_host("."));
  EXPECT_GE(exam.findings.size(), 10u);
}

}  // namespace
}  // namespace sextant
