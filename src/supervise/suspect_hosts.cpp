#include "supervise/suspect_hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "supervise/smaller_mesh.h"

namespace sextant {

SuspectHosts::SuspectHosts(const RunConfig& run, const std::string& hostfile, const std::filesystem::path& out)
    : run_(run) {
  if (!hostfile.empty()) pool_.emplace(hostfile, out);
}

std::vector<HostSlots> SuspectHosts::available() const {
  return pool_ ? pool_->available() : std::vector<HostSlots>();
}

void SuspectHosts::blame(const std::vector<PreflightFinding>& findings, Attempt& attempt) {
  std::vector<std::string> named;
  for (const HostSlots& host : available())
    if (std::ranges::any_of(findings,
                            [&](const PreflightFinding& f) { return f.is_failure && is_about(f, host.name); }))
      named.push_back(host.name);
  if (named.size() != 1) return;
  attempt.host = named.front();
  prove(attempt.host);
}

std::vector<std::string> SuspectHosts::note(const Attempt& attempt, int64_t failures_without_progress) {
  bool computes_wrongly = attempt.corrupt_rank.has_value();  // such a host ruins what it takes part in
  bool proven = attempt.cause.kind == CauseKind::faulty_device || attempt.cause.kind == CauseKind::unhealthy;
  if (failures_without_progress <= 1 && !proven) failures_.clear();
  int most = computes_wrongly ? 1 : kSuspectAfter;
  if (!pool_ || attempt.host.empty() || ++failures_[attempt.host] < most) return {};
  std::vector<HostSlots> left = pool_->available();
  if (std::erase_if(left, [&](const HostSlots& host) { return host.name == attempt.host; }) == 0) return {};
  if (!mesh_for(run_, slots_of(left)))
    return {fmt::format("{} is suspect, but without it there is no mesh for this run", attempt.host)};
  pool_->set_aside(attempt.host, attempt.cause.text());
  return {fmt::format("{} is set aside; take its line out of {} when it is well again", attempt.host,
                      pool_->suspects_file().string())};
}

}  // namespace sextant
