// The log that disk_shim.cpp writes, and the rules that make files survive a power failure: whatever becomes visible by
// a rename has all its data on disk before, and its name after.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkout.h"

namespace sextant {

// Sanitizers must come first among preloaded libraries, and have these calls for themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kDiskShimWorks = false;
#else
inline constexpr bool kDiskShimWorks = true;
#endif

struct DiskEvent {
  std::string what, path, other;
};

inline std::vector<DiskEvent> read_disk_log(const std::filesystem::path& file) {
  std::vector<DiskEvent> events;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    DiskEvent event;
    std::getline(fields, event.what, '\t');
    std::getline(fields, event.path, '\t');
    std::getline(fields, event.other, '\t');
    events.push_back(event);
  }
  return events;
}

// Before a command or program: what it does to files goes to `log`.
inline std::string with_disk_log(const std::filesystem::path& log) {
  return fmt::format("LD_PRELOAD={} SEXTANT_DISK_LOG={}", checkout::kDiskShim, log.string());
}

class DiskRules {
 public:
  explicit DiskRules(std::vector<DiskEvent> events) : events_(std::move(events)) {}

  // Renames that give something the name it is to keep; what moves into a side directory on its way out does not count.
  std::vector<size_t> publications() const {
    std::vector<size_t> found;
    for (size_t i = 0; i < events_.size(); ++i)
      if ((events_[i].what == "rename" || events_[i].what == "exchange") &&
          events_[i].other.find(".tmp-") == std::string::npos)
        found.push_back(i);
    return found;
  }
  const DiskEvent& operator[](size_t i) const { return events_[i]; }

  // In words; empty when all rules hold.
  std::vector<std::string> broken() const {
    std::vector<std::string> wrong;
    for (size_t at : publications()) check(at, wrong);
    return wrong;
  }

 private:
  static bool is_inside(const std::string& path, const std::string& root) {
    return path == root || path.starts_with(root + "/");
  }

  bool flushed_between(const std::string& path, size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i)
      if (events_[i].what == "fsync" && events_[i].path == path) return true;
    return false;
  }

  void check(size_t at, std::vector<std::string>& wrong) const {
    const std::string &source = events_[at].path, &target = events_[at].other;
    namespace fs = std::filesystem;
    // Files made or written inside: path → where it last changed. A directory changes when something is made in it.
    std::map<std::string, size_t> changed;
    for (size_t i = 0; i < at; ++i) {
      bool makes = events_[i].what == "create";
      if ((!makes && events_[i].what != "write") || !is_inside(events_[i].path, source)) continue;
      changed[events_[i].path] = i;
      if (makes && events_[i].path != source) changed[fs::path(events_[i].path).parent_path().string()] = i;
    }
    if (changed.empty()) wrong.push_back(fmt::format("{} appeared, and nothing was seen to be written", target));
    for (const auto& [path, last] : changed)
      if (!flushed_between(path, last, at))
        wrong.push_back(
            fmt::format("{} was not flushed after its last change and before it appeared as {}", path, target));
    // Of files whose writes were not seen, one flush at least.
    std::error_code ignored;
    for (fs::recursive_directory_iterator entry(target, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      std::string before = source + entry->path().string().substr(target.size());
      if (entry->is_regular_file() && !flushed_between(before, 0, at))
        wrong.push_back(fmt::format("{} was not flushed before it appeared", before));
    }
    if (!flushed_between(fs::path(target).parent_path().string(), at + 1, events_.size()))
      wrong.push_back(fmt::format("the directory of {} was not flushed after it appeared", target));
    for (size_t i = at + 1; i < events_.size(); ++i) {
      if (events_[i].other == target) break;  // replaced by another
      // A file of its own may be appended to, such as a list of metrics; what is in a directory that appeared whole may
      // not.
      if (events_[i].what == "write" && events_[i].path.starts_with(target + "/"))
        wrong.push_back(fmt::format("{} was written after it had appeared", events_[i].path));
    }
  }

  std::vector<DiskEvent> events_;
};

}  // namespace sextant
