// The runs under the directories that were named: runs themselves, or folders of runs, which are looked through again
// as time goes on. A run keeps its id for as long as it is there; ids are all that the outside may ask for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "watch/watched_run.h"

namespace sextant {

class RunSet {
 public:
  // UserError for what is no directory.
  explicit RunSet(std::vector<std::filesystem::path> directories);

  // Looks for new runs and drops those whose directory is gone. True where the list changed. Links below the named
  // directories are not followed; folders are searched a few levels deep, runs are not searched.
  // Of large files a sample is taken at once.
  bool rescan();

  // Reads what is new of all runs, at most about `budget` bytes of each. The ids of runs that changed.
  std::vector<int> poll(size_t budget);
  // The same for about `time`, each in turn; what is left is read later.
  std::vector<int> poll_for(std::chrono::milliseconds time);
  void read_all();  // until nothing more is there

  const std::vector<std::unique_ptr<WatchedRun>>& runs() const { return runs_; }
  const WatchedRun* find(int id) const;
  bool is_loading() const;

 private:
  std::vector<std::filesystem::path> directories_;
  std::vector<std::unique_ptr<WatchedRun>> runs_;  // by name
  int next_id_ = 1;
  size_t turn_ = 0;  // whose it is in poll_for
};

}  // namespace sextant
