// Machine: what the simulator knows of the hardware. Public figures, tables measured by others or by `sextant bench`,
// and a few named efficiencies. Read from machines/NAME.toml (machine_file.h), where every figure names its source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/topology.h"

namespace sextant {

// One direction, per device.
struct Link {
  double bytes_per_s = 0;
  double latency_s = 0;  // of one hop of a collective
  double alone_s = 0;    // the same where each collective is a call of its own and that is known to take longer
  bool reached = false;  // bytes_per_s is what collectives were measured to reach: no efficiency lessens it
  bool operator==(const Link&) const = default;
};

// Devices that reach each other in the same way: a node, a rack with one switch, an island of a cluster. Innermost
// first; the last level holds everything.
struct Level {
  std::string name;     // "node", "rack", "cluster"
  int64_t devices = 0;  // inside one of them; 0: no limit
  Link link;
  bool reduces_in_switch = false;  // NVLS, SHARP: an all-reduce sends everything once
  Topology topology = {};          // of the units of the level inside, or of the devices at the innermost
  bool operator==(const Level&) const = default;
};

// Seconds and flop/s of fused attention kernels, as shares of the device's dense peak, at long sequences. Between head
// sizes the nearer one counts.
struct AttentionRate {
  double forward_64 = 0, forward_128 = 0, backward_64 = 0, backward_128 = 0;
  bool operator==(const AttentionRate&) const = default;
};

// One measured GEMM: y[rows, columns] = Σ over depth.
struct MeasuredGemm {
  double rows = 0, columns = 0, depth = 0;
  double seconds = 0;
  std::string dtype = "bf16";
  bool operator==(const MeasuredGemm&) const = default;
};

// Which GEMM of a linear with experts: y = x·wᵀ, dx = dy·w, dw = dyᵀ·x.
enum class GroupedPass : uint8_t { forward, input_gradient, weight_gradient };

// One measured grouped GEMM: `experts` of y[rows, columns] = Σ over depth in one kernel, all of one size. Of weight
// gradients depth counts the rows of an expert.
struct MeasuredGroupedGemm {
  GroupedPass pass = GroupedPass::forward;
  double experts = 0, rows = 0, columns = 0, depth = 0;
  double seconds = 0;
  std::string dtype = "bf16";
  double flops() const { return 2 * experts * rows * columns * depth; }
  bool operator==(const MeasuredGroupedGemm&) const = default;
};

// One measured op or message, of the kind whose name it stands under; what `size` holds is defined in measured_ops.h.
struct MeasuredOp {
  std::vector<double> size;
  double seconds = 0;
  bool operator==(const MeasuredOp&) const = default;
};

// Achieved shares of a device type's nominal figures. Each has physical bounds (bounds_of); no others are ever fitted.
struct Efficiencies {
  double product = 0.8;    // of the peak, in large GEMMs with well-shaped operands
  double attention = 1;    // of the attention table
  double memory = 0.85;    // of the memory's bandwidth, in streaming kernels
  double near_link = 0.8;  // of the node's links, in long collectives
  double far_link = 0.8;   // of the links between nodes
  // Speed of compute while a message is under way. Inside a node messages take units and memory bandwidth from it,
  // between nodes fewer units.
  double near_overlap = 0.9;
  double far_overlap = 0.9;
  double kernel_s = 4e-6;   // lost between two kernels that depend on each other
  double imbalance = 1.02;  // the slowest of kImbalanceDevices devices against the mean
  bool operator==(const Efficiencies&) const = default;
};

constexpr int64_t kImbalanceDevices = 64;

// The slowest of so many devices against the mean: 1 of a single one, `imbalance` of kImbalanceDevices.
double slowest_of(const Efficiencies& efficiency, int64_t devices);

struct Bounds {
  double least, most;
};
struct NamedEfficiency {
  const char* name;
  double Efficiencies::*field;
  Bounds bounds;
};
// All of them, for files, fits and reports.
const std::vector<NamedEfficiency>& named_efficiencies();

enum class DeviceKind : uint8_t {
  accelerator,
  cpu,  // a rank's threads of one processor; its times are those of `Machine::ops`
};

struct Device {
  std::string name;  // "H100 SXM"
  DeviceKind kind = DeviceKind::accelerator;
  std::string maker;  // "NVIDIA"
  int64_t units = 0;  // SMs, CUs, cores: what a GEMM's tiles are dealt to
  double clock_hz = 0;
  double flops_per_clock_and_unit = 0;  // dense, bf16 or what `peaks` calls reference
  std::map<std::string, double> peaks;  // dense flop/s by dtype: "bf16", "fp16", "tf32", "fp32", "fp8"
  // Share of peak that GEMMs of a type reach, relative to the share that bf16 GEMMs reach. A type that is absent has 1.
  // At a power limit narrower types lose more of their clock.
  std::map<std::string, double> gemm_rates;
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
  double cache_bytes = 0;
  double watts = 0;
  bool operator==(const Device&) const = default;
};

// The memory and disks of a node's host, and the way to it. 0: unknown.
struct HostMemory {
  double link_bytes_per_s = 0;    // of one device, each way, as copies of page-locked memory reach it
  double memory_bytes_per_s = 0;  // of a node, read and written, as streaming loops on all cores reach it
  double memory_bytes = 0;        // of a node
  double nvme_bytes_per_s = 0;    // of a node's local disks, read or written
  double nvme_bytes = 0;          // of them all
  bool operator==(const HostMemory&) const = default;

  // Whether a device can keep something in the memory of its host.
  bool has_link() const { return link_bytes_per_s > 0; }
};

struct Machine {
  std::string name;   // "h100-sxm"
  std::string place;  // the file it came from
  std::string about, date;
  Device device;
  int64_t devices_per_node = 8;
  // Who shares the memory of a host when so many ranks run.
  int64_t devices_of_host(int64_t ranks) const { return std::min(devices_per_node, ranks); }
  HostMemory host;
  // Each rank's share of its host's memory and disks, for a run of `ranks`; infinite where the size is unknown.
  double host_bytes_of(int64_t ranks) const { return share_of_host(host.memory_bytes, ranks); }
  double nvme_bytes_of(int64_t ranks) const { return share_of_host(host.nvme_bytes, ranks); }
  std::vector<Level> levels;
  LevelExtent extent_of(size_t level) const;
  std::map<std::string, AttentionRate>
      attention;  // by kernel: "flash1", "flash2", "flash3", "cudnn", "unfused" is computed
  std::vector<MeasuredGemm> gemms;
  std::vector<MeasuredGroupedGemm> grouped_gemms;      // of our own kernels
  std::map<std::string, std::vector<MeasuredOp>> ops;  // by name, of a CPU
  Efficiencies tables;                                 // from published kernel and collective tables
  std::optional<Efficiencies> fitted;                  // calibrated on published or own runs
  std::optional<Efficiencies> fitted_experts;          // the same, on runs of models with experts
  double context_bytes = 1.5e9;                        // driver context, libraries' code, communicators
  double price_per_hour = 0;                           // of one device; 0: unknown
  double mtbf_hours = 0;                               // of one device; 0: unknown
  double checkpoint_bytes_per_s = 0;                   // of one device, to shared storage; 0: unknown
  std::string fitted_on;                               // the runs `fitted` was calibrated on
  std::string fitted_experts_on;
  std::map<std::string, std::string> sources;  // where each table's figures come from, by the table's name

  double share_of_host(double bytes, int64_t ranks) const {
    return bytes > 0 ? bytes / static_cast<double>(devices_of_host(ranks)) : std::numeric_limits<double>::infinity();
  }
  const Efficiencies& efficiency() const { return fitted ? *fitted : tables; }
  double peak(const std::string& dtype) const;  // 0 when the device has no such units
  double gemm_rate(const std::string& dtype) const;
  bool operator==(const Machine&) const = default;
};

// As it is for models with experts: what was fitted on runs of such models counts, where anything was.
Machine with_experts(Machine machine);

}  // namespace sextant
