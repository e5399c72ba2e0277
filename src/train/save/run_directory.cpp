#include "train/save/run_directory.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"
#include "ckpt/checkpoints.h"
#include "ckpt/staged_directory.h"
#include "config/load.h"
#include "train/health/heartbeat.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// Says, while checkpoints are being moved aside, which and where to.
constexpr std::string_view kMoveFile = "set-aside.json";

struct Move {
  int64_t after = 0;
  std::string to;
};

std::optional<Move> pending_move(const fs::path& out) {
  if (!fs::is_regular_file(look_at_link(out / kMoveFile))) return std::nullopt;
  nlohmann::json json = nlohmann::json::parse(read_file(out / kMoveFile), nullptr, false);
  if (!json.is_object() || !json.contains("after") || !json["after"].is_number_integer() || !json.contains("to") ||
      !json["to"].is_string() || json["to"].get<std::string>().find('/') != std::string::npos)
    throw UserError({.place = (out / kMoveFile).string(),
                     .got = "cannot be read",
                     .expected = "the file as Sextant writes it",
                     .hint = "remove it after moving checkpoints of the abandoned branch out of the way"});
  return Move{json["after"].get<int64_t>(), json["to"].get<std::string>()};
}

void rename_or_throw(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw RunError(from.string(), fmt::format("cannot move to {}: {}", to.string(), error.message()));
}

void finish_move(const fs::path& out, const Move& move) {
  fs::path to = out / move.to;
  std::error_code error;
  fs::create_directory(to, error);
  if (error) throw RunError(to.string(), fmt::format("cannot create: {}", error.message()));
  if (is_there(out / "metrics.jsonl") && !is_there(to / "metrics.jsonl"))
    write_file_atomically(to / "metrics.jsonl", read_file(out / "metrics.jsonl"));
  for (const Checkpoint& checkpoint : list_checkpoints(out))
    if (checkpoint.step > move.after) rename_or_throw(checkpoint.path, to / checkpoint.path.filename());
  for (const auto& [first_step, config] : config_history(out))
    if (first_step > move.after) rename_or_throw(config, to / config.filename());
  flush_to_disk(to);
  flush_to_disk(out);
  fs::remove(out / kMoveFile, error);
}

// The first OUT/abandoned-N that nothing has, not even a link.
std::string new_branch_name(const fs::path& out) {
  for (int n = 1;; ++n) {
    std::string name = fmt::format("abandoned-{}", n);
    std::error_code ignored;
    if (fs::symlink_status(out / name, ignored).type() == fs::file_type::not_found) return name;
  }
}

// A supervisor's directory is its own also while none of its attempts runs. So a run of nobody's looks for one, before
// its own lock and after: whichever of the two came second, one of them sees the other's lock.
RunLock lock_unsupervised(const fs::path& out) {
  RunLock::require_free(out, RunLock::kSupervisorFile);
  RunLock lock(out);
  RunLock::require_free(out, RunLock::kSupervisorFile);
  return lock;
}

// Nothing here is what a person gave, so the supervisor tries again.
RunLock lock_supervised(const fs::path& out, const std::string& supervisor) {
  constexpr std::chrono::seconds kPatience{10};  // with those that are about to see that it is not theirs
  std::string holder = RunLock::last_holder(out, RunLock::kSupervisorFile);
  if (!holder.starts_with(supervisor + ","))
    throw RunError(out.string(), fmt::format("{}, which started this run, is no longer its supervisor", supervisor),
                   "use `sextant run`, or leave --supervised-by out");
  try {
    return RunLock(out, RunLock::kRunFile, kPatience);
  } catch (const UserError& held) {
    throw RunError("", held.what());
  }
}

}  // namespace

PreparedDirectory prepare_run_directory(const fs::path& out, const std::string& supervisor) {
  std::error_code error;
  // As far as the path exists: `--out notes.txt/run` fails for the same reason as `--out notes.txt`.
  for (fs::path at = out; !at.empty(); at = at.has_relative_path() ? at.parent_path() : fs::path())
    if (fs::exists(at, error) && !fs::is_directory(at, error))
      throw UserError({.place = at.string(),
                       .got = "is a file",
                       .expected = "a directory for checkpoints and metrics",
                       .hint = "choose another with --out"});
  fs::create_directories(out, error);
  if (error)
    throw RunError(out.string(), fmt::format("cannot create the run's directory: {}", error.message()),
                   "choose another with --out, or change who may write there");
  PreparedDirectory prepared{.lock = supervisor.empty() ? lock_unsupervised(out) : lock_supervised(out, supervisor),
                             .notes = {}};
  if (!prepared.lock.is_held())
    prepared.notes.push_back(
        fmt::format("{}: this file system has no locks; do not start a second run here", out.string()));
  recover_directory(out);
  remove_temporary_files(out);
  if (std::optional<Move> move = pending_move(out)) finish_move(out, *move);
  std::vector<std::string> failures = previous_failures(out);
  if (!failures.empty())
    prepared.notes.push_back(fmt::format("previous run failed:\n  {}", fmt::join(failures, "\n  ")));
  clear_heartbeats(out);
  return prepared;
}

std::optional<fs::path> set_aside_later_steps(const fs::path& out, int64_t step) {
  std::vector<Checkpoint> all = list_checkpoints(out);
  if (all.empty() || all.back().step <= step) return std::nullopt;
  Move move{.after = step, .to = new_branch_name(out)};
  write_file_atomically(out / kMoveFile, nlohmann::json{{"after", move.after}, {"to", move.to}}.dump() + "\n");
  finish_move(out, move);
  return out / move.to;
}

void record_config(const fs::path& out, const RunConfig& run, int64_t first_step) {
  std::string text = config_toml(run), before;
  std::error_code ignored;
  for (const auto& [step, config] : config_history(out))
    if (step < first_step)
      before = read_file(config);
    else
      fs::remove(config, ignored);
  if (before != text) write_file_atomically(out / fmt::format("config-{:06}.toml", first_step), text);
  fs::path current = out / "config.toml";
  if (!fs::exists(current, ignored) || read_file(current) != text) write_file_atomically(current, text);
}

std::map<int64_t, fs::path> config_history(const fs::path& out) {
  constexpr std::string_view kBefore = "config-", kAfter = ".toml";
  std::map<int64_t, fs::path> history;
  std::error_code error;
  for (fs::directory_iterator at(out, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.starts_with(kBefore) || !name.ends_with(kAfter) || name.size() <= kBefore.size() + kAfter.size())
      continue;
    const char* first = name.data() + kBefore.size();
    const char* last = name.data() + name.size() - kAfter.size();
    int64_t step = 0;
    if (auto read = std::from_chars(first, last, step); read.ec == std::errc() && read.ptr == last && step > 0)
      history.emplace(step, at->path());
  }
  require_looked_at(out, error);
  return history;
}

}  // namespace sextant
