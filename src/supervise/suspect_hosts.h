// SuspectHosts: the hosts of a supervised run, and by which of them its attempts failed. A host that fails again and
// again is set aside, as long as the run can go on without it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "supervise/host_list.h"
#include "supervise/preflight.h"
#include "supervise/run_report.h"

namespace sextant {

class SuspectHosts {
 public:
  // `hostfile`: with spares; empty: the run has no list of hosts.
  SuspectHosts(const RunConfig& run, const std::string& hostfile, const std::filesystem::path& out);

  bool are_named() const { return pool_.has_value(); }
  std::vector<HostSlots> available() const;  // none where they are not named

  // Names the host of an attempt that doctor found unfit, which need not fail twice. Two that differ from each other:
  // nobody knows which is wrong.
  void blame(const std::vector<PreflightFinding>& findings, Attempt& attempt);
  // The next failure by this host sets it aside.
  void prove(const std::string& host) { failures_[host] = kSuspectAfter; }
  // After a failed attempt that is followed by another: lines for the user, where a host is set aside or cannot be.
  std::vector<std::string> note(const Attempt& attempt, int64_t failures_without_progress);

 private:
  static constexpr int kSuspectAfter = 2;  // failures by one host without progress

  const RunConfig& run_;
  std::optional<HostPool> pool_;
  std::map<std::string, int> failures_;
};

}  // namespace sextant
