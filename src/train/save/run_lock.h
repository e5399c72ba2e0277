// RunLock: one run at a time in one --out directory. The kernel drops the lock however the process ends, so a crash
// leaves none.
#pragma once

#include <filesystem>

#include "ckpt/disk.h"

namespace sextant {

class RunLock {
 public:
  RunLock() = default;  // holds nothing
  // UserError that names the holder when another process has it.
  explicit RunLock(const std::filesystem::path& out);

  bool is_held() const { return held_; }  // false where the file system has no locks

 private:
  Descriptor file_;
  bool held_ = false;
};

}  // namespace sextant
