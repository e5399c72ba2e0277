// A machine made of answers, in the best of health; tests plant faults in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "doctor/host.h"

namespace sextant {

// A time that passes only when somebody looks at a clock, so that a busy machine changes no test.
struct PlantedTime {
  std::atomic<int64_t> microseconds = 0;
};

class PlantedHost {
 public:
  explicit PlantedHost(const std::string& name = "node0",
                       std::shared_ptr<PlantedTime> time = std::make_shared<PlantedTime>())
      : time_(std::move(time)) {
    write("proc/meminfo",
          "MemTotal:       67108864 kB\nMemFree:        40000000 kB\nMemAvailable:   60000000 kB\n"
          "SwapTotal:             0 kB\nSwapFree:              0 kB\nHugePages_Total:       0\n"
          "HugePages_Free:        0\nHugepagesize:       2048 kB\n");
    write("proc/self/cgroup", "0::/job\n");
    write("proc/sys/kernel/osrelease", "6.8.0\n");
    write("proc/sys/kernel/numa_balancing", "0\n");
    write("proc/cpuinfo", "model name\t: Example 9000\n");
    write("sys/fs/cgroup/job/memory.max", "max\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("sys/devices/system/cpu/online", "0-63\n");
    write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
    write("sys/devices/system/node/online", "0-1\n");
    write("sys/class/infiniband/mlx5_0/node_type", "1\n");
    versions = {
        {"cuda", "12.8"}, {"cublas", "12.8.4"}, {"cudnn", "9.8.0"}, {"nccl", "2.26.2"}, {"mpi", "Open MPI v4.1.4"}};
    GpuFacts gpu{.name = "NVIDIA H200",
                 .vbios = "96.00",
                 .memory_bytes = uint64_t{150} << 30,
                 .ecc = true,
                 .uncorrected_errors = 0,
                 .corrected_errors = 2,
                 .remaps = RowRemaps{},
                 .links = NvLinks{.up = 18},
                 .pcie = PcieLink{16, 16, 5, 5},
                 .clock_mhz = 1980,
                 .highest_clock_mhz = 1980,
                 .slowed_by = 0,
                 .temperature = 40};
    gpus = {.driver = "570.86", .newest_cuda = "12.8", .gpus = {gpu, gpu}};
    host = {.name = name, .directories = {"/runs", "/tmp"}};
    host.file = [this](const std::string& path) { return found(files_, path); };
    host.holds_any = [this](const std::string& path) {
      auto at = files_.lower_bound(path + "/");
      return at != files_.end() && at->first.starts_with(path + "/");
    };
    host.space = [this](const std::filesystem::path& path) { return found(spaces, path.string()); };
    host.limit = [this](LimitKind kind) { return std::optional(limits.at(kind)); };
    host.version_of = [this](std::string_view library) { return found(versions, std::string(library)); };
    host.kernel_log = [this] { return log; };
    host.gpus = [this] { return gpus; };
    host.now = [this] {
      return clock_offset + 1e-6 * static_cast<double>(time_->microseconds += answers_after_microseconds);
    };
    host.clock_is_kept = [this] { return clock_is_kept; };
  }
  PlantedHost(const PlantedHost&) = delete;
  PlantedHost& operator=(const PlantedHost&) = delete;

  void write(const std::string& path, std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    files_["/" + path] = text;
  }
  void remove(const std::string& path) {
    std::erase_if(files_, [&](const auto& file) { return file.first.starts_with("/" + path + "/"); });
  }

  static constexpr uint64_t kGiB = uint64_t{1} << 30;
  std::map<std::string, Space> spaces{{"/dev/shm", {32 * kGiB, 32 * kGiB, 1000000, 999000}},
                                      {"/runs", {1000 * kGiB, 600 * kGiB, 1000000, 900000}},
                                      {"/tmp", {100 * kGiB, 60 * kGiB, 0, 0}}};
  std::map<LimitKind, Limit> limits{{LimitKind::open_files, {1 << 20, 1 << 20}},
                                    {LimitKind::locked_memory, {kUnlimited, kUnlimited}},
                                    {LimitKind::processes, {kUnlimited, kUnlimited}}};
  std::map<std::string, std::string> versions;
  std::optional<std::string> log = "6,1,0,-;Linux version 6.8.0\n";
  GpuReport gpus;
  double clock_offset = 0;
  int64_t answers_after_microseconds = 1;
  std::optional<bool> clock_is_kept = true;
  Host host;

 private:
  template <class T>
  static std::optional<T> found(const std::map<std::string, T>& map, const std::string& key) {
    auto at = map.find(key);
    return at == map.end() ? std::nullopt : std::optional(at->second);
  }
  std::map<std::string, std::string> files_;
  std::shared_ptr<PlantedTime> time_;
};

}  // namespace sextant
