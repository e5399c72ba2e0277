// A directory that appears whole or not at all. While it is written it lies in a side directory beside its final place
// (base/temporary_name.h); commit() flushes it and swaps it in. A crash at any moment leaves the old directory
// or the new one whole, and at most a side directory left over, which recover_directory recognises and puts right.
// A symbolic link at the final place is refused: what it points to is not ours to replace.
#pragma once

#include <filesystem>

#include "ckpt/disk.h"

namespace sextant {

enum class Existing {
  refuse,   // UserError when something other than an empty directory is already there
  replace,  // the old directory, with all it holds, goes when the new one is in place
};

enum class Replacing {
  exchange,     // one atomic step; two renames where the file system has no such step
  two_renames,  // the old one aside, the new one in
};

class StagedDirectory {
 public:
  StagedDirectory(const std::filesystem::path& final_place, Existing existing);
  ~StagedDirectory();  // without commit, nothing remains
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::filesystem::path& path() const { return staged_; }  // write here
  const std::filesystem::path& final_place() const { return final_; }
  void commit(Replacing replacing = Replacing::exchange);  // once, when every file is closed

 private:
  std::filesystem::path final_;
  std::filesystem::path side_;
  std::filesystem::path staged_;
  Descriptor lock_;  // held while it is in use, so that no run takes side_ for a leftover
  bool committed_ = false;
};

// Puts right what crashed processes left in `parent`: an old directory that was moved aside and has no successor
// returns to its name, the rest is removed. Side directories of living processes, and all else, stay as they are.
// A StagedDirectory does the same for its own place.
void recover_directory(const std::filesystem::path& parent);

// Removes a directory so that a crash half-way never leaves a part of it under its name.
void remove_directory(const std::filesystem::path& directory);

}  // namespace sextant
