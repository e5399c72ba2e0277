#include "exec/cuda/probe/sensors.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/nvml.h"

namespace sextant {

SensorReadings read_sensors(int cuda_device) {
  static const Nvml nvml;  // opening takes longer than reading, and a probe reads often
  constexpr int kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;
  SensorReadings out;
  std::array<char, 32> bus{};
  if (!nvml.started() || cudaDeviceGetPCIBusId(bus.data(), bus.size(), cuda_device) != cudaSuccess) return out;
  std::optional<Nvml::Device> device =
      nvml.value<Nvml::Device>("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(bus.data()));
  if (!device) return out;
  if (auto mhz = nvml.value<unsigned>("nvmlDeviceGetClockInfo", *device, kSmClock))
    out.readings.clock = fmt::format("{} MHz", *mhz);
  if (auto mhz = nvml.value<unsigned>("nvmlDeviceGetClockInfo", *device, kMemoryClock))
    out.readings.memory_clock = fmt::format("{} MHz", *mhz);
  if (auto milliwatts = nvml.value<unsigned>("nvmlDeviceGetPowerUsage", *device))
    out.readings.power = fmt::format("{:.0f} W", *milliwatts / 1e3);
  if (auto degrees = nvml.value<unsigned>("nvmlDeviceGetTemperature", *device, kGpuTemperature))
    out.readings.temperature = fmt::format("{} C", *degrees);
  out.driver = nvml.text("nvmlSystemGetDriverVersion").value_or("");
  return out;
}

}  // namespace sextant
