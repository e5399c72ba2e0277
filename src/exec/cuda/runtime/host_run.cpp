#include "exec/cuda/runtime/host_run.h"

#include <utility>

namespace sextant {

void HostFailure::keep(std::exception_ptr thrown) {
  std::lock_guard lock(mutex_);
  if (!first_) first_ = std::move(thrown);
  happened_.store(true, std::memory_order_release);
}

void HostFailure::rethrow() const {
  if (!happened()) return;
  std::lock_guard lock(mutex_);
  std::rethrow_exception(first_);
}

void HostRun::run(void* self) {
  HostRun& op = *static_cast<HostRun*>(self);
  if (op.failure.happened()) return;
  try {
    op.prepared ? op.prepared->run(op.call) : op.kernel.run(op.call);
  } catch (...) {
    op.failure.keep(std::current_exception());
  }
}

}  // namespace sextant
