#include "watch/run_set.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/printable.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr int kFolderLevels = 4;
constexpr size_t kMostRuns = 1000, kMostEntries = 20'000;  // of folders looked through

class RunFinder {
 public:
  // Directory to name, which is its path below the folder that was named.
  std::map<fs::path, std::string> found;

  void look_in(const fs::path& directory, const std::string& name, int level) {
    if (found.size() >= kMostRuns) return;
    if (is_run_directory(directory)) {
      found.emplace(directory, name);
      return;
    }
    if (level == kFolderLevels) return;
    std::error_code error;
    for (fs::directory_iterator at(directory, fs::directory_options::skip_permission_denied, error), end;
         !error && at != end; at.increment(error)) {
      if (++entries_ > kMostEntries) return;
      std::error_code none;
      if (at->is_symlink(none) || !at->is_directory(none)) continue;
      std::string below = at->path().filename().string();
      if (below.starts_with('.')) continue;
      look_in(at->path(), level == 0 ? below : name + "/" + below, level + 1);
    }
  }

 private:
  size_t entries_ = 0;
};

}  // namespace

RunSet::RunSet(std::vector<fs::path> directories) {
  for (const fs::path& directory : directories) {
    std::error_code error;
    if (!fs::is_directory(directory, error))
      throw UserError({.place = printable(directory.string()),
                       .got = fs::exists(directory, error) ? "is not a directory" : "directory not found",
                       .expected = "a run's directory (train --out), or a folder of runs"});
    directories_.push_back(fs::canonical(directory));
  }
}

bool RunSet::rescan() {
  RunFinder finder;
  for (const fs::path& directory : directories_) finder.look_in(directory, directory.filename().string(), 0);
  bool changed = std::erase_if(runs_, [&](const auto& run) { return !finder.found.contains(run->directory()); }) > 0;
  for (const auto& [directory, name] : finder.found) {
    if (std::ranges::any_of(runs_, [&](const auto& run) { return run->directory() == directory; })) continue;
    runs_.push_back(std::make_unique<WatchedRun>(next_id_++, directory, name));
    runs_.back()->take_sample();
    changed = true;
  }
  if (changed)
    std::ranges::sort(runs_, [](const auto& a, const auto& b) {
      return std::tie(a->name(), a->directory()) < std::tie(b->name(), b->directory());
    });
  return changed;
}

std::vector<int> RunSet::poll(size_t budget) {
  std::vector<int> changed;
  for (const auto& run : runs_)
    if (run->poll(budget)) changed.push_back(run->id());
  return changed;
}

std::vector<int> RunSet::poll_for(std::chrono::milliseconds time) {
  constexpr size_t kPiece = size_t{1} << 18;  // bytes: a millisecond or two
  std::set<int> changed;
  auto end = std::chrono::steady_clock::now() + time;
  // Everything once, then those that have more.
  for (size_t looked = 0; looked < runs_.size() || is_loading(); ++looked) {
    if (runs_.empty() || std::chrono::steady_clock::now() >= end) break;
    WatchedRun& run = *runs_[turn_++ % runs_.size()];
    if (looked >= runs_.size() && !run.is_loading()) continue;
    if (run.poll(kPiece)) changed.insert(run.id());
  }
  return {changed.begin(), changed.end()};
}

void RunSet::read_all() {
  rescan();
  do poll(size_t{1} << 26);
  while (is_loading());
}

const WatchedRun* RunSet::find(int id) const {
  auto found = std::ranges::find_if(runs_, [&](const auto& run) { return run->id() == id; });
  return found == runs_.end() ? nullptr : found->get();
}

bool RunSet::is_loading() const {
  return std::ranges::any_of(runs_, [](const auto& run) { return run->is_loading(); });
}

}  // namespace sextant
