// TimeMarks: moments of a stream by the device's own clock. The host, which runs ahead, sees them late.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace sextant {

class TimeMarks {
 public:
  TimeMarks(cudaStream_t stream, int kept);
  ~TimeMarks();
  TimeMarks(const TimeMarks&) = delete;
  TimeMarks& operator=(const TimeMarks&) = delete;

  int64_t mark();                                                // behind all that is on the stream; its number
  double seconds_between(int64_t earlier, int64_t later) const;  // waits for the later one

 private:
  cudaEvent_t event_of(int64_t number) const;

  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;  // used in turn
  int64_t marked_ = 0;
};

}  // namespace sextant
