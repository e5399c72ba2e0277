// Ctrl-C (SIGINT) and SIGTERM ask the run to end after the current step; a second one ends it at once.
#pragma once

namespace sextant {

// While it lives, the two signals set a flag instead of killing the process. One at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool asked() const;
};

}  // namespace sextant
