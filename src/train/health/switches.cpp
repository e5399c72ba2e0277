#include "train/health/switches.h"

#include <system_error>

namespace sextant {

namespace {

constexpr std::chrono::milliseconds kLookEvery{250};  // a file system may be far away

bool switch_exists(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

}  // namespace

bool stop_file_exists(const std::filesystem::path& out) {
  return switch_exists(out / kStopFile);
}

Switches::Asked Switches::look() {
  auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return last_;
  next_look_ = now + kLookEvery;
  last_ = {.stop = stop_file_exists(out_), .save = switch_exists(out_ / kSaveFile)};
  return last_;
}

void Switches::save_begins() {
  std::error_code ignored;
  std::filesystem::remove(out_ / kSaveFile, ignored);
  last_.save = false;
}

}  // namespace sextant
