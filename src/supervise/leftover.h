// The process that a killed supervisor leaves running: OUT/supervisor.json names this child. The next supervisor waits
// for it to save and stop, and kills it when it does not.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

namespace sextant {

void note_child(const std::filesystem::path& out, pid_t child);
void forget_child(const std::filesystem::path& out);

// Returns when nothing that a supervisor of this host started is running in `out` any more.
void end_leftover(const std::filesystem::path& out, std::chrono::milliseconds patience,
                  const std::function<void(const std::string& line)>& say);

}  // namespace sextant
