// Facts that the driver reports about the GPUs of this machine. A value that a GPU does not report is nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sextant {

struct PcieLink {
  unsigned width = 0, widest = 0;
  unsigned generation = 0, newest = 0;
};

struct NvLinks {
  int up = 0, down = 0;
  uint64_t errors = 0;  // replays, recoveries and checksum errors since the driver was loaded
};

struct RowRemaps {
  unsigned corrected = 0, uncorrected = 0;
  bool pending = false, failed = false;
};

struct GpuFacts {
  std::string name;  // "NVIDIA H200"
  std::optional<std::string> vbios;
  std::optional<uint64_t> memory_bytes;
  std::optional<bool> ecc;                     // whether it is on
  std::optional<uint64_t> uncorrected_errors;  // since the driver was loaded
  std::optional<uint64_t> corrected_errors;
  std::optional<RowRemaps> remaps;
  std::optional<NvLinks> links;
  std::optional<PcieLink> pcie;
  std::optional<unsigned> clock_mhz, highest_clock_mhz;
  std::optional<uint64_t> slowed_by;  // bits of ThrottleReason
  std::optional<unsigned> temperature;
};

// As the driver's interface numbers them.
enum ThrottleReason : uint64_t {
  kGpuIdle = 0x1,
  kClocksSet = 0x2,
  kPowerCap = 0x4,
  kHardwareSlowdown = 0x8,
  kThermalSoftware = 0x20,
  kThermalHardware = 0x40,
  kPowerBrake = 0x80,
};

struct GpuReport {
  std::string problem;  // why there are none to look at: no driver, no card; empty when there are
  std::optional<std::string> driver, newest_cuda;  // the driver's version, and the newest CUDA it serves
  std::vector<GpuFacts> gpus;
};

// Asks the driver through its library, which is opened when called: builds without CUDA can ask too.
GpuReport ask_gpus();

}  // namespace sextant
