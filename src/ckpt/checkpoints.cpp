#include "ckpt/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/error.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step-";

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  int64_t step = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace

fs::path checkpoint_path(const fs::path& run, int64_t step) {
  return run / fmt::format("{}{:06}", kStepPrefix, step);
}

std::optional<int64_t> step_of_checkpoint(const fs::path& checkpoint) {
  fs::path name = checkpoint.has_filename() ? checkpoint.filename() : checkpoint.parent_path().filename();
  return step_of(name.string());
}

std::vector<Checkpoint> list_checkpoints(const fs::path& run, std::string_view witness) {
  std::vector<Checkpoint> found;
  std::error_code error;
  fs::directory_iterator at(run, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::optional<int64_t> step = step_of(at->path().filename().string());
    std::error_code ignored;
    // A link is not followed: what it points to is no checkpoint of this run, and is not ours to prune.
    if (step && fs::is_directory(at->symlink_status(ignored)) && fs::exists(at->path() / witness, ignored))
      found.push_back({*step, at->path()});
  }
  if (error)
    throw UserError({.place = run.string(),
                     .got = fmt::format("cannot be read: {}", error.message()),
                     .expected = "the directory of a run"});
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  return found;
}

std::optional<Checkpoint> latest_checkpoint(const fs::path& run, std::string_view witness) {
  std::vector<Checkpoint> all = list_checkpoints(run, witness);
  if (all.empty()) return std::nullopt;
  return all.back();
}

}  // namespace sextant
