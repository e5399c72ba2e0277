// StepJudge: runs a step that was not finite again, where the run's own device is and on another device or host, and
// judges from it whether hardware, or data and software, made it so.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervise/start_command.h"
#include "supervise/step_verdict.h"
#include "supervise/supervisor.h"
#include "supervise/suspect_hosts.h"

namespace sextant {

class StepJudge {
 public:
  // The request must outlive it.
  StepJudge(const SuperviseRequest& request, const SuspectHosts& hosts, std::function<bool()> is_asked_to_stop);

  const std::string& place() const { return places_.front().text; }  // "on this host"
  const std::string& host() const { return places_.front().host; }   // of the list of hosts; empty: this one

  // Takes request.replay_limit at most.
  StepVerdict judge(int64_t step) const;

 private:
  struct Place {
    std::string text;
    StartRequest start;
    std::vector<std::string> overrides = {};
    std::string host = {};
  };
  Place place_on(const std::string& host) const;
  std::optional<ReplayFacts> replay(int64_t step, const Place& place,
                                    std::chrono::steady_clock::time_point until) const;

  const SuperviseRequest& request_;
  std::function<bool()> is_asked_to_stop_;
  std::vector<Place> places_;  // one, or two where there is another to compare with
};

}  // namespace sextant
