#include "base/gpu_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>
#include <thread>

#include "base/nvml.h"

namespace sextant {

namespace {

constexpr int kClockOfMultiprocessors = 1;
constexpr unsigned kMostGpusNamed = 16;

struct Utilization {
  unsigned gpu, memory;  // percent of the last moment
};

std::string ask_for_states() {
  Nvml nvml;
  if (!nvml.started()) return "";
  std::string text;
  unsigned count = std::min(nvml.value<unsigned>("nvmlDeviceGetCount_v2").value_or(0), kMostGpusNamed);
  for (unsigned i = 0; i < count; ++i) {
    auto device = nvml.value<Nvml::Device>("nvmlDeviceGetHandleByIndex_v2", i);
    if (!device) continue;
    auto used = nvml.value<Utilization>("nvmlDeviceGetUtilizationRates", *device);
    auto clock = nvml.value<unsigned>("nvmlDeviceGetClockInfo", *device, kClockOfMultiprocessors);
    text += fmt::format("{}GPU {} {}", text.empty() ? "" : ", ", i,
                        !used            ? "does not answer"
                        : used->gpu == 0 ? "is idle"
                                         : fmt::format("is {} % busy", used->gpu));
    if (used && used->gpu > 0 && clock) text += fmt::format(" at {} MHz", *clock);
  }
  return text;
}

}  // namespace

std::string gpu_states(std::chrono::milliseconds at_most) {
  // Left behind where the driver never answers: the process is about to end.
  auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> states = answer->get_future();
  std::thread([answer] { answer->set_value(ask_for_states()); }).detach();
  return states.wait_for(at_most) == std::future_status::ready ? states.get()
                                                               : "the driver of the GPUs does not answer";
}

}  // namespace sextant
