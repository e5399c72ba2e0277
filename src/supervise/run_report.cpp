#include "supervise/run_report.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "laws/economics.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

using ReportJson = nlohmann::ordered_json;

// Lines that do not parse, and steps without a time, are left out: a crash may have cut one off.
template <class Take>
void for_each_metrics_line(const fs::path& out, Take take) {
  std::ifstream file(out / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer())
      take(json["step"].get<int64_t>(), json);
  }
}

// When a checkpoint's directory got its name, which it has only once all of it is on disk.
std::optional<WallTime> time_saved(const Checkpoint& checkpoint) {
  struct stat status = {};
  if (::stat(checkpoint.path.c_str(), &status) != 0) return std::nullopt;
  return WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::seconds(status.st_ctim.tv_sec) +
                                                                 std::chrono::nanoseconds(status.st_ctim.tv_nsec)));
}

double milliseconds_kept(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

std::string causes_line(const RunReport& report) {
  std::map<std::string, int> counts;
  for (const Attempt& attempt : report.attempts)
    if (attempt.cause.kind != CauseKind::finished)
      ++counts[attempt.cause.kind == CauseKind::hang ? std::string(info_of(CauseKind::hang).name)
                                                     : attempt.cause.text()];
  std::string text;
  for (const auto& [cause, count] : counts) text += fmt::format("{}{} × {}", text.empty() ? ": " : ", ", count, cause);
  return text;
}

// Steps between two points that a restart can go on from.
int64_t steps_between_copies(const RunConfig& run, int64_t all) {
  int64_t least = all;
  for (int64_t every : {run.checkpoint.every, run.checkpoint.local_every})
    if (every > 0) least = std::min(least, every);
  return least;
}

std::string name_of_exit(ExitCode code) {
  for (const ExitMeaning& meaning : exit_meanings())
    if (meaning.code == code) return std::string(meaning.name);
  BUG("no meaning for exit code {}", number_of(code));
}

ReportJson attempt_json(const Attempt& attempt) {
  ReportJson json{{"attempt", attempt.number}, {"cause", info_of(attempt.cause.kind).name}};
  if (attempt.cause.exit_code >= 0) json["exit_code"] = attempt.cause.exit_code;
  if (attempt.cause.signal != 0) json["signal"] = attempt.cause.signal;
  json["rank"] = attempt.rank ? ReportJson(*attempt.rank) : ReportJson(nullptr);
  json["host"] = attempt.host.empty() ? ReportJson(nullptr) : ReportJson(attempt.host);
  if (!attempt.mesh.empty()) json["mesh"] = attempt.mesh;
  json["from_step"] = attempt.trained ? ReportJson(attempt.from_step) : ReportJson(nullptr);
  json["done_step"] = attempt.done_step;
  json["seconds"] = milliseconds_kept(seconds_between(attempt.started, attempt.ended));
  json["lost"] = lost_json(attempt.lost);
  return json;
}

}  // namespace

int64_t last_metrics_step(const fs::path& out) {
  int64_t last = 0;
  for_each_metrics_line(out, [&](int64_t step, const nlohmann::json&) { last = std::max(last, step); });
  return last;
}

double productive_seconds(const fs::path& out, int64_t after) {
  double sum = 0;
  for_each_metrics_line(out, [&](int64_t step, const nlohmann::json& line) {
    if (step > after && line.contains("step_s") && line["step_s"].is_number()) sum += line["step_s"].get<double>();
  });
  return sum;
}

std::optional<WallTime> last_step_time(const fs::path& out) {
  std::error_code error;
  fs::file_time_type written = fs::last_write_time(out / "metrics.jsonl", error);
  if (error) return std::nullopt;
  return std::chrono::time_point_cast<WallTime::duration>(fs::file_time_type::clock::to_sys(written));
}

std::optional<WallTime> last_progress(const fs::path& out, const RunConfig& run) {
  std::optional<WallTime> last = last_step_time(out);
  if (run.checkpoint.background) return last;  // the next step began while it was written
  try {
    std::optional<Checkpoint> newest = latest_checkpoint(out, kRunStateFile);
    return std::max(last, newest ? time_saved(*newest) : std::nullopt);
  } catch (const RunError&) {  // the directory cannot be listed this time
    return last;
  }
}

int64_t RunReport::failures() const {
  return std::ranges::count_if(attempts,
                               [](const Attempt& attempt) { return attempt.cause.kind != CauseKind::finished; });
}

double RunReport::other_seconds() const {
  return std::max(0.0, seconds - productive_seconds - lost.sum() - first_start_seconds);
}

int64_t RunReport::interruptions() const {
  return std::ranges::count_if(attempts, [](const Attempt& attempt) {
    return attempt.trained && attempt.cause.kind != CauseKind::finished && attempt.cause.kind != CauseKind::stopped;
  });
}

double RunReport::asked_stop_seconds() const {
  double sum = 0;
  for (const Attempt& attempt : attempts)
    if (attempt.cause.kind == CauseKind::stopped) sum += attempt.lost.sum();
  return sum;
}

std::optional<double> RunReport::predicted_goodput(const RunConfig& run) const {
  int64_t steps = last_step - first_step, interval = steps_between_copies(run, steps);
  double training = seconds - first_start_seconds - lost.sum() - end_seconds, asked = asked_stop_seconds();
  if (interruptions() == 0 || steps <= 0 || !(productive_seconds > 0) || !(training > 0)) return std::nullopt;
  auto count = static_cast<double>(interruptions()), done = static_cast<double>(steps);
  double step_seconds = productive_seconds / done, all_steps = done + static_cast<double>(steps_repeated);
  double saving = std::max(0.0, training - all_steps * step_seconds) / all_steps * static_cast<double>(interval);
  // Faults that strike before training goes on have made the interruption longer already. The formula lengthens the
  // restart it is given by such faults itself, from R to M·(e^(R/M) − 1): it gets the R that comes to what was seen.
  double between = training / count;
  double restart = between * std::log1p((lost.sum() - asked) / count / between);
  double share = economics_of({.step_seconds = step_seconds,
                               .tokens_per_step = 1,
                               .token_budget = done,
                               .device_mtbf_hours = between / 3600,
                               .checkpoint_seconds = saving,
                               .checkpoint_every = interval,
                               .restart_seconds = restart})
                     .goodput;
  if (!(share > 0)) return 0;
  return productive_seconds / (productive_seconds / share + first_start_seconds + asked + end_seconds);
}

ReportJson lost_json(const LostSeconds& lost) {
  return {{"detecting", milliseconds_kept(lost.detecting)},
          {"ending", milliseconds_kept(lost.ending)},
          {"waiting", milliseconds_kept(lost.waiting)},
          {"preflight", milliseconds_kept(lost.preflight)},
          {"starting", milliseconds_kept(lost.starting)}};
}

std::string report_text(const RunReport& report, const RunConfig& run) {
  std::string text = fmt::format("attempts  {}{}\n", report.attempts.size(), causes_line(report));
  text +=
      fmt::format("steps     {} to {}, {} done again\n", report.first_step, report.last_step, report.steps_repeated);
  text += fmt::format(
      "time      {}: {} in steps that count, {} until the first step, {} saving, measuring and done again\n",
      human_duration(report.seconds), human_duration(report.productive_seconds),
      human_duration(report.first_start_seconds), human_duration(report.other_seconds()));
  const LostSeconds& lost = report.lost;
  if (report.failures() > 0)
    text += fmt::format(
        "lost      {}: {:.1f} s detecting, {:.1f} s ending, {:.1f} s waiting, {:.1f} s preflight, {:.1f} s starting\n",
        human_duration(lost.sum()), lost.detecting, lost.ending, lost.waiting, lost.preflight, lost.starting);
  text += fmt::format("goodput   {:.1f} %", 100 * report.goodput());
  if (std::optional<double> predicted = report.predicted_goodput(run))
    text += fmt::format("; plan's formula gives {:.1f} % for {} interruption{} in this time", 100 * *predicted,
                        report.interruptions(), report.interruptions() == 1 ? "" : "s");
  text += fmt::format("\noutcome   {}{}\n", name_of_exit(report.outcome), report.why.empty() ? "" : ": " + report.why);
  return text;
}

ReportJson report_json(const RunReport& report, const RunConfig& run) {
  ReportJson json{{"outcome", name_of_exit(report.outcome)}, {"why", report.why}, {"attempts", ReportJson::array()}};
  for (const Attempt& attempt : report.attempts) json["attempts"].push_back(attempt_json(attempt));
  json["failures"] = report.failures();
  json["first_step"] = report.first_step;
  json["last_step"] = report.last_step;
  json["steps_repeated"] = report.steps_repeated;
  json["seconds"] = milliseconds_kept(report.seconds);
  json["productive_seconds"] = milliseconds_kept(report.productive_seconds);
  json["first_start_seconds"] = milliseconds_kept(report.first_start_seconds);
  json["end_seconds"] = milliseconds_kept(report.end_seconds);
  json["lost"] = lost_json(report.lost);
  json["goodput"] = report.goodput();
  std::optional<double> predicted = report.predicted_goodput(run);
  json["predicted_goodput"] = predicted ? ReportJson(*predicted) : ReportJson(nullptr);
  return json;
}

}  // namespace sextant
