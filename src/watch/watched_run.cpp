#include "watch/watched_run.h"

#include "train/op_times.h"
#include "watch/line_sample.h"

namespace sextant {

namespace {

constexpr int64_t kSilentAfter = 120;  // seconds, or so many steps as below
constexpr double kSilentSteps = 20;

}  // namespace

std::string_view name_of(WatchedState state) {
  switch (state) {
    case WatchedState::waiting:
      return "waiting";
    case WatchedState::running:
      return "running";
    case WatchedState::silent:
      return "silent";
    case WatchedState::finished:
      return "finished";
    case WatchedState::stopped:
      return "stopped";
    case WatchedState::failed:
      return "failed";
  }
  return "";
}

bool is_run_directory(const std::filesystem::path& directory) {
  std::error_code none;
  return std::filesystem::is_regular_file(directory / kMetricsFile, none) ||
         std::filesystem::is_regular_file(directory / kEventsFile, none);
}

WatchedRun::WatchedRun(int id, std::filesystem::path directory, std::string name)
    : id_(id),
      directory_(std::move(directory)),
      name_(std::move(name)),
      metrics_(directory_ / kMetricsFile),
      event_lines_(directory_ / kEventsFile),
      plan_line_(directory_ / kPlanFile) {}

void WatchedRun::take_sample() {
  constexpr size_t kSampleLines = 400, kSampledFrom = size_t{2} << 20;  // bytes
  sample_lines(directory_ / kMetricsFile, kSampleLines, kSampledFrom,
               [this](std::string_view line) { sample_.add_line(line, RunColumns::Lines::some); });
}

bool WatchedRun::poll(size_t budget) {
  auto metrics = metrics_.read(
      budget, [this] { columns_ = RunColumns(); }, [this](std::string_view line) { columns_.add_line(line); });
  if (!metrics_.has_more() && sample_.rows() > 0) sample_ = RunColumns();
  auto events = event_lines_.read(
      budget, [this] { events_.clear(); }, [this](std::string_view line) { events_.add_line(line); });
  auto plan = plan_line_.read(
      budget, [this] { plan_.reset(); }, [this](std::string_view line) { plan_ = planned_step_in(line); });
  return metrics != LineTail::Change::none || events != LineTail::Change::none || plan != LineTail::Change::none;
}

WatchedState WatchedRun::state(int64_t now) const {
  const std::vector<RunEvent>& events = events_.all();
  for (size_t i = events.size(); i-- > 0;) switch (events[i].kind) {
      case EventKind::finish:
        return WatchedState::finished;
      case EventKind::stop:
        return WatchedState::stopped;
      case EventKind::failure:
        return WatchedState::failed;
      case EventKind::start:
      case EventKind::resume:
      case EventKind::restart:
        i = 0;  // it goes on
        break;
      default:
        break;
    }
  if (columns_.rows() == 0) return WatchedState::waiting;
  double step_s = columns_.last("step_s").value_or(0);
  bool is_recent = static_cast<double>(now - modified()) < std::max<double>(kSilentAfter, kSilentSteps * step_s);
  return is_recent ? WatchedState::running : WatchedState::silent;
}

}  // namespace sextant
