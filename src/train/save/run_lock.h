// RunLock: one run, and one supervisor, at a time in one --out directory. The kernel drops the lock however the process
// ends, so a crash leaves none.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ckpt/disk.h"
#include "ckpt/still_there.h"

namespace sextant {

class RunLock {
 public:
  RunLock() = default;  // holds nothing
  static constexpr std::string_view kRunFile = "lock", kSupervisorFile = "supervisor.lock";
  // UserError that names the holder when another process has it, and still has it after the patience: one that only
  // looks has it for a moment.
  explicit RunLock(const std::filesystem::path& out, std::string_view file = kRunFile,
                   std::chrono::milliseconds patience = std::chrono::milliseconds(0));

  bool is_held() const { return held_; }                       // false where the file system has no locks
  bool is_there() const { return is_still_at(file_, path_); }  // false once its file has been removed

  // UserError, as above, while another process has it. Takes nothing, and makes no file.
  static void require_free(const std::filesystem::path& out, std::string_view file);

  // Who wrote its name there last, whether it still holds the lock or not; empty: nobody.
  static std::string last_holder(const std::filesystem::path& out, std::string_view file);
  static std::string own_name();  // as it stands there, without the time

 private:
  std::filesystem::path path_;
  Descriptor file_;
  bool held_ = false;
};

}  // namespace sextant
