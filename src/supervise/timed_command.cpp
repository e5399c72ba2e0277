#include "supervise/timed_command.h"

#include <fcntl.h>

#include "base/run_file.h"
#include "ckpt/disk.h"
#include "supervise/child_process.h"

namespace sextant {

namespace {

constexpr std::chrono::milliseconds kLook{50};

}  // namespace

std::optional<int> run_to_file(const std::vector<std::string>& words, const std::filesystem::path& printed,
                               const CommandLimits& limits) {
  Descriptor file(open_run_file(printed, O_WRONLY | O_TRUNC));
  if (!file.is_open()) return std::nullopt;
  ChildProcess child(words, file.get());
  std::optional<int> status;
  while (!(status = child.wait(kLook)) && std::chrono::steady_clock::now() < limits.until && !limits.is_asked_to_stop())
    continue;
  child.kill_all();
  return status;
}

}  // namespace sextant
