#include "app/device.h"

#include "base/error.h"
#include "exec/cpu/cpu_executor.h"

namespace sextant {

namespace {

void refuse_cuda(const RunConfig& run) {
  if (run.device == "cuda")
    throw UserError({.place = run.place_of("device"), .got = "this build has no CUDA executor",
                     .expected = "\"cpu\" or \"auto\""});
}

}  // namespace

std::unique_ptr<Executor> executor_for(const RunConfig& run) {
  refuse_cuda(run);
  return make_cpu_executor(static_cast<int>(run.train.threads));
}

Target target_for(const RunConfig& run) {
  refuse_cuda(run);
  return cpu_target(static_cast<int>(run.train.threads));
}

}  // namespace sextant
