#include "supervise/step_judge.h"

#include <fmt/format.h>

#include <utility>

#include "base/files.h"
#include "supervise/cause.h"
#include "supervise/timed_command.h"

namespace sextant {

StepJudge::StepJudge(const SuperviseRequest& request, const SuspectHosts& hosts, std::function<bool()> is_asked_to_stop)
    : request_(request), is_asked_to_stop_(std::move(is_asked_to_stop)) {
  for (const HostSlots& host : hosts.available())
    if (places_.size() < 2) places_.push_back(place_on(host.name));
  if (places_.empty()) places_.push_back(place_on(""));
  if (places_.size() < 2 && request_.run.device == DeviceChoice::cuda) {
    Place cpu = place_on("");
    cpu.text = "on the CPU";
    cpu.overrides = {"device=cpu"};
    places_.push_back(cpu);
  }
}

StepJudge::Place StepJudge::place_on(const std::string& host) const {
  Place place{.text = host.empty() ? "on this host" : "on " + host, .start = request_.start, .host = host};
  place.start.starter = host.empty() ? Starter::process : Starter::mpirun;
  place.start.ranks = 1;
  if (host.empty())
    place.start.launcher_arguments.clear();
  else
    place.start.launcher_arguments.insert(place.start.launcher_arguments.end(), {"--host", host});
  return place;
}

std::optional<ReplayFacts> StepJudge::replay(int64_t step, const Place& place,
                                             std::chrono::steady_clock::time_point until) const {
  std::vector<std::string> words{"replay", request_.out.string(), "--step", std::to_string(step), "--bisect", "--json",
                                 "-q"};
  words.insert(words.end(), place.overrides.begin(), place.overrides.end());
  std::filesystem::path printed = request_.out / fmt::format("replay-{:06}.json", step);
  std::optional<int> status = run_to_file(start_command(place.start, words), printed, {until, is_asked_to_stop_});
  if (!status || cause_of_status(*status).kind != CauseKind::finished) return std::nullopt;
  return parse_replay(read_file(printed));
}

StepVerdict StepJudge::judge(int64_t step) const {
  auto until = std::chrono::steady_clock::now() + request_.replay_limit;
  std::optional<ReplayFacts> here = replay(step, places_[0], until), there;
  bool compares = places_.size() > 1;
  if (here && here->agree && !here->finite && compares) there = replay(step, places_[1], until);
  return judge_step(step, here, places_[0].text, there, compares ? places_[1].text : std::string());
}

}  // namespace sextant
