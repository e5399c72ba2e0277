#include "ckpt/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/error.h"
#include "base/path_error.h"

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

// One that cannot be looked at may well be there: a run must not go on from an older one for that.
bool is_checkpoint(const fs::path& path, std::string_view witness) {
  return fs::is_directory(look_at_link(path)) && is_there(path / witness);
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
    // A link is not followed: what it points to is no checkpoint of this run, and is not ours to prune.
    if (step && is_checkpoint(at->path(), witness)) found.push_back({*step, at->path()});
  }
  if (error) throw_unreadable(run, error.value(), "the directory of a run");
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  return found;
}

std::optional<Checkpoint> latest_checkpoint(const fs::path& run, std::string_view witness) {
  std::vector<Checkpoint> all = list_checkpoints(run, witness);
  if (all.empty()) return std::nullopt;
  return all.back();
}

}  // namespace sextant
