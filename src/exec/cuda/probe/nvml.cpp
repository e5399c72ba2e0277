#include "exec/cuda/probe/nvml.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fmt/format.h>

namespace sextant {

namespace {

// The few calls we make, as the library's stable interface has them; its header need not be there.
struct Nvml {
  using Device = void*;
  int (*init)() = nullptr;
  int (*by_bus)(const char*, Device*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  bool open = false;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Nvml open_library() {
  Nvml nvml;
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  nvml.open = library && find(library, "nvmlInit_v2", nvml.init) &&
              find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.by_bus) &&
              find(library, "nvmlDeviceGetClockInfo", nvml.clock) &&
              find(library, "nvmlDeviceGetPowerUsage", nvml.power) &&
              find(library, "nvmlDeviceGetTemperature", nvml.temperature) &&
              find(library, "nvmlSystemGetDriverVersion", nvml.driver) && nvml.init() == 0;
  return nvml;
}

}  // namespace

SensorReadings read_sensors(int cuda_device) {
  static const Nvml nvml = open_library();  // stays open to the end of the process
  constexpr int kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;
  SensorReadings out;
  char bus[32] = {}, version[96] = {};
  Nvml::Device device = nullptr;
  if (!nvml.open || cudaDeviceGetPCIBusId(bus, sizeof bus, cuda_device) != cudaSuccess ||
      nvml.by_bus(bus, &device) != 0)
    return out;
  unsigned value = 0;
  if (nvml.clock(device, kSmClock, &value) == 0) out.readings.clock = fmt::format("{} MHz", value);
  if (nvml.clock(device, kMemoryClock, &value) == 0) out.readings.memory_clock = fmt::format("{} MHz", value);
  if (nvml.power(device, &value) == 0) out.readings.power = fmt::format("{:.0f} W", value / 1e3);
  if (nvml.temperature(device, kGpuTemperature, &value) == 0) out.readings.temperature = fmt::format("{} C", value);
  if (nvml.driver(version, sizeof version) == 0) out.driver = version;
  return out;
}

}  // namespace sextant
