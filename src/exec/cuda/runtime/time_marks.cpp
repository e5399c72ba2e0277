#include "exec/cuda/runtime/time_marks.h"

#include "base/error.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

TimeMarks::TimeMarks(cudaStream_t stream, int kept) : stream_(stream), events_(static_cast<size_t>(kept)) {
  for (cudaEvent_t& event : events_) check_cuda(cudaEventCreate(&event), "an event");
}

TimeMarks::~TimeMarks() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

cudaEvent_t TimeMarks::event_of(int64_t number) const {
  return events_[static_cast<size_t>(number) % events_.size()];
}

int64_t TimeMarks::mark() {
  check_cuda(cudaEventRecord(event_of(marked_), stream_), "marking a moment");
  return marked_++;
}

double TimeMarks::seconds_between(int64_t earlier, int64_t later) const {
  BUG_IF(earlier < marked_ - static_cast<int64_t>(events_.size()) || later >= marked_ || earlier > later,
         "moments {} and {} of {}", earlier, later, marked_);
  check_cuda(cudaEventSynchronize(event_of(later)), "waiting for the end of a step");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, event_of(earlier), event_of(later)), "the time of a step");
  return 1e-3 * milliseconds;
}

}  // namespace sextant
