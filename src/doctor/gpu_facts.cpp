// Reads facts about every GPU from the driver's management library.
#include <fmt/format.h>

#include "base/nvml.h"
#include "doctor/gpu_facts.h"

namespace sextant {

namespace {

using Device = Nvml::Device;

constexpr int kVolatile = 0;  // counted since the driver was loaded
constexpr int kCorrectedErrors = 0, kUncorrectedErrors = 1;
constexpr int kStreamingMultiprocessors = 1;  // a kind of clock
constexpr int kOfTheGpu = 0;                  // a kind of thermometer
constexpr unsigned kMostLinks = 18, kLinkErrorKinds = 4;
constexpr unsigned kMostGpus = 256;

struct Memory {
  unsigned long long total, free, used;
};

std::optional<bool> ecc_of(const Nvml& nvml, Device device) {
  int now = 0, next = 0;
  if (!nvml.ask("nvmlDeviceGetEccMode", device, &now, &next)) return std::nullopt;
  return now != 0;
}

std::optional<uint64_t> errors_of(const Nvml& nvml, Device device, int kind) {
  return nvml.value<unsigned long long>("nvmlDeviceGetTotalEccErrors", device, kind, kVolatile);
}

std::optional<RowRemaps> remaps_of(const Nvml& nvml, Device device) {
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (!nvml.ask("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed)) return std::nullopt;
  return RowRemaps{corrected, uncorrected, pending != 0, failed != 0};
}

std::optional<NvLinks> links_of(const Nvml& nvml, Device device) {
  NvLinks links;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    std::optional<int> active = nvml.value<int>("nvmlDeviceGetNvLinkState", device, link);
    if (!active) continue;  // the card has fewer
    ++(*active ? links.up : links.down);
    for (unsigned kind = 0; *active && kind < kLinkErrorKinds; ++kind)
      links.errors += nvml.value<unsigned long long>("nvmlDeviceGetNvLinkErrorCounter", device, link, kind).value_or(0);
  }
  if (links.up + links.down == 0) return std::nullopt;
  return links;
}

std::optional<PcieLink> pcie_of(const Nvml& nvml, Device device) {
  auto width = nvml.value<unsigned>("nvmlDeviceGetCurrPcieLinkWidth", device);
  auto widest = nvml.value<unsigned>("nvmlDeviceGetMaxPcieLinkWidth", device);
  auto generation = nvml.value<unsigned>("nvmlDeviceGetCurrPcieLinkGeneration", device);
  auto newest = nvml.value<unsigned>("nvmlDeviceGetMaxPcieLinkGeneration", device);
  if (!width || !widest || !generation || !newest) return std::nullopt;
  return PcieLink{*width, *widest, *generation, *newest};
}

GpuFacts facts_of(const Nvml& nvml, Device device) {
  GpuFacts gpu;
  gpu.name = nvml.text("nvmlDeviceGetName", device).value_or("GPU");
  gpu.vbios = nvml.text("nvmlDeviceGetVbiosVersion", device);
  if (auto memory = nvml.value<Memory>("nvmlDeviceGetMemoryInfo", device)) gpu.memory_bytes = memory->total;
  gpu.ecc = ecc_of(nvml, device);
  gpu.uncorrected_errors = errors_of(nvml, device, kUncorrectedErrors);
  gpu.corrected_errors = errors_of(nvml, device, kCorrectedErrors);
  gpu.remaps = remaps_of(nvml, device);
  gpu.links = links_of(nvml, device);
  gpu.pcie = pcie_of(nvml, device);
  gpu.clock_mhz = nvml.value<unsigned>("nvmlDeviceGetClockInfo", device, kStreamingMultiprocessors);
  gpu.highest_clock_mhz = nvml.value<unsigned>("nvmlDeviceGetMaxClockInfo", device, kStreamingMultiprocessors);
  gpu.slowed_by = nvml.value<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  gpu.temperature = nvml.value<unsigned>("nvmlDeviceGetTemperature", device, kOfTheGpu);
  return gpu;
}

}  // namespace

GpuReport ask_gpus() {
  Nvml nvml;
  if (!nvml.found()) return {.problem = "no NVIDIA driver on this machine"};
  if (!nvml.started()) return {.problem = "the NVIDIA driver's library is here but finds no driver"};
  GpuReport report{.driver = nvml.text("nvmlSystemGetDriverVersion")};
  if (auto cuda = nvml.value<int>("nvmlSystemGetCudaDriverVersion_v2"))
    report.newest_cuda = fmt::format("{}.{}", *cuda / 1000, *cuda % 1000 / 10);
  unsigned count = nvml.value<unsigned>("nvmlDeviceGetCount_v2").value_or(0);
  for (unsigned i = 0; i < count && i < kMostGpus; ++i)
    if (auto device = nvml.value<Device>("nvmlDeviceGetHandleByIndex_v2", i))
      report.gpus.push_back(facts_of(nvml, *device));
  if (report.gpus.empty()) report.problem = "the NVIDIA driver is here, but no GPU is visible";
  return report;
}

}  // namespace sextant
