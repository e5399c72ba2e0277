// RunLock: one run, and one supervisor, at a time in one --out directory. The kernel drops the lock however the process
// ends, so a crash leaves none.
#pragma once

#include <filesystem>
#include <string_view>

#include "ckpt/disk.h"

namespace sextant {

class RunLock {
 public:
  RunLock() = default;  // holds nothing
  static constexpr std::string_view kRunFile = "lock", kSupervisorFile = "supervisor.lock";
  // UserError that names the holder when another process has it.
  explicit RunLock(const std::filesystem::path& out, std::string_view file = kRunFile);

  bool is_held() const { return held_; }  // false where the file system has no locks

 private:
  Descriptor file_;
  bool held_ = false;
};

}  // namespace sextant
