// A command that is run to its end or to a limit, with its output in a file of its own. It has nothing to save: a
// request to stop ends it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sextant {

struct CommandLimits {
  std::chrono::steady_clock::time_point until;
  std::function<bool()> is_asked_to_stop;
};

// Its status as wait(2) has it, where it ended in time.
std::optional<int> run_to_file(const std::vector<std::string>& words, const std::filesystem::path& printed,
                               const CommandLimits& limits);

}  // namespace sextant
