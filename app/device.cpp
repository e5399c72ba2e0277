#include "app/device.h"

#include "base/error.h"
#include "exec/cpu/cpu_executor.h"
#include "run/run_target.h"
#ifdef SEXTANT_CUDA
#include "exec/cuda/runtime/cuda_executor.h"
#include "exec/cuda/runtime/devices.h"
#endif

namespace sextant {

namespace {

#ifdef SEXTANT_CUDA
bool wants_cuda(const RunConfig& run) {
  return run.device == DeviceChoice::cuda || (run.device == DeviceChoice::automatic && !cuda_devices().devices.empty());
}

// Before data is read and memory taken: is there a GPU at all?
void require_device(const RunConfig& run) {
  CudaDevices found = cuda_devices();
  if (found.devices.empty())
    throw UserError({.place = run.place_of("device"),
                     .got = fmt::format("no CUDA device here ({})", found.problem),
                     .expected = "\"cpu\" or \"auto\""});
}
#else
bool wants_cuda(const RunConfig& run) {
  return run.device == DeviceChoice::cuda;
}

void refuse_cuda(const RunConfig& run) {
  if (run.device == DeviceChoice::cuda)
    throw UserError({.place = run.place_of("device"),
                     .got = "this program was built without its CUDA parts",
                     .expected = "\"cpu\" or \"auto\"",
                     .hint = "scripts/build cuda makes one that has them"});
}
#endif

}  // namespace

MakeExecutor executors_for(const RunConfig& run) {
#ifdef SEXTANT_CUDA
  if (wants_cuda(run)) {
    require_device(run);
    CudaOptions options{.determinism = determinism_of(run), .host_threads = static_cast<int>(run.train.threads)};
    return [options](const RankContext& context, int) { return make_cuda_executor(options, context); };
  }
#else
  refuse_cuda(run);
#endif
  return [](const RankContext& context, int threads) { return make_cpu_executor(threads, context); };
}

DeviceChoice device_of_auto() {
  return wants_cuda(RunConfig{}) ? DeviceChoice::cuda : DeviceChoice::cpu;
}

DeviceChoice device_named(std::string_view word) {
  std::optional<DeviceChoice> device = value_of_word<DeviceChoice>(word);
  BUG_IF(!device, "no device {}", word);
  return *device;
}

std::unique_ptr<Executor> executor_for(const std::string& device, int threads) {
  RunConfig run;
  run.device = device_named(device);
  run.places["device"] = "--device";
  return executors_for(run)({}, threads);
}

Target target_for(const RunConfig& run, int ranks) {
  if (wants_cuda(run)) return cuda_target_of(run);
  return cpu_target_of(run, ranks);
}

}  // namespace sextant
