#include "app/device.h"

#include "base/error.h"
#include "exec/cpu/cpu_executor.h"
#include "plan/programs.h"
#ifdef SEXTANT_CUDA
#include "exec/cuda/devices.h"
#endif

namespace sextant {

namespace {

// What a person who asked for a GPU wants to know: is it the build, the machine, or us?
std::string why_no_cuda() {
#ifdef SEXTANT_CUDA
  CudaDevices found = cuda_devices();
  if (found.devices.empty()) return fmt::format("no CUDA device here ({})", found.problem);
  return fmt::format("{} is here, but there is no CUDA executor yet", found.devices.front().name);
#else
  return "this build has no CUDA parts, and there is no CUDA executor yet";
#endif
}

void refuse_cuda(const RunConfig& run) {
  if (run.device == "cuda")
    throw UserError({.place = run.place_of("device"), .got = why_no_cuda(), .expected = "\"cpu\" or \"auto\""});
}

}  // namespace

MakeExecutor executors_for(const RunConfig& run) {
  refuse_cuda(run);
  return [](const RankSeat& seat, int threads) { return make_cpu_executor(threads, seat); };
}

Target target_for(const RunConfig& run, int ranks) {
  refuse_cuda(run);
  return cpu_target(threads_per_rank(run, ranks));
}

}  // namespace sextant
