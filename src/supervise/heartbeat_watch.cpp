#include "supervise/heartbeat_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/health/heartbeat.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

double seconds_of(HeartbeatWatch::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string file_of(int64_t rank) {
  return fmt::format("rank-{}.json", rank);
}

bool is_running(const std::vector<LastBeat>& beats, const std::string& file) {
  for (const LastBeat& beat : beats)
    if (file == file_of(beat.rank)) return beat.state == "running";
  return true;  // cannot be read: torn by a crash, or removed
}

}  // namespace

HeartbeatWatch::HeartbeatWatch(fs::path out, const Limits& limits, Clock::time_point start)
    : out_(std::move(out)), limits_(limits), start_(start) {}

void HeartbeatWatch::expect(int64_t ranks, Clock::time_point now) {
  if (std::exchange(has_begun_, true)) return;
  for (int64_t rank = 0; rank < ranks; ++rank) files_.try_emplace(file_of(rank), Seen{{}, now});
}

std::optional<std::string> HeartbeatWatch::look(Clock::time_point now) {
  std::error_code error;
  for (fs::directory_iterator at(heartbeat_directory(out_), error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    fs::file_time_type written = fs::last_write_time(at->path(), ignored);
    if (ignored) continue;
    auto [file, is_new] = files_.try_emplace(at->path().filename().string(), Seen{written, now});
    if (file->second.written != written) file->second = {written, now};
  }
  if (files_.empty()) {
    if (now - start_ < limits_.start) return std::nullopt;
    return fmt::format("no heartbeat within {:.3g} s of the start", seconds_of(now - start_));
  }
  auto oldest = std::ranges::min_element(files_, {}, [](const auto& file) { return file.second.changed; });
  if (now - oldest->second.changed < limits_.stale) return std::nullopt;
  // Only now are they read: some have gone still, which those of ranks that have ended do.
  std::vector<LastBeat> beats = last_beats(out_);
  bool any_running = false;
  for (const auto& [file, seen] : files_) {
    if (!is_running(beats, file)) continue;
    any_running = true;
    if (now - seen.changed < limits_.stale) continue;
    return fmt::format("no heartbeat of {} for {:.3g} s", fs::path(file).stem().string(),
                       seconds_of(now - seen.changed));
  }
  auto newest = std::ranges::max_element(files_, {}, [](const auto& file) { return file.second.changed; });
  if (any_running || now - newest->second.changed < limits_.leaving) return std::nullopt;
  return fmt::format("all ranks ended {:.3g} s ago, and their processes are still there",
                     seconds_of(now - newest->second.changed));
}

bool HeartbeatWatch::launcher_is_left(Clock::time_point now) const {
  if (files_.empty()) return false;
  auto newest = std::ranges::max_element(files_, {}, [](const auto& file) { return file.second.changed; });
  if (now - newest->second.changed < limits_.failing) return false;
  std::vector<LastBeat> beats = last_beats(out_);
  auto ended = [](const LastBeat& beat) { return beat.state != "running"; };
  return beats.size() == files_.size() && std::ranges::all_of(beats, ended) &&
         std::ranges::any_of(beats, [](const LastBeat& beat) { return beat.state == "failed"; });
}

}  // namespace sextant
