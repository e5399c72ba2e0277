// Switches: files that a person or a program puts into a run's directory to ask something of the run. OUT/STOP: it
// finishes its step, saves and ends, and does not start while the file is there. OUT/SAVE: it saves after its step,
// removes the file and goes on. The leader looks at them, a few times a second at most.
#pragma once

#include <chrono>
#include <filesystem>
#include <string_view>

namespace sextant {

inline constexpr std::string_view kStopFile = "STOP", kSaveFile = "SAVE";

bool stop_file_exists(const std::filesystem::path& out);

class Switches {
 public:
  explicit Switches(std::filesystem::path out) : out_(std::move(out)) {}

  struct Asked {
    bool stop = false, save = false;
  };
  Asked look();
  void save_begins();  // what is asked from now on is another save

 private:
  std::filesystem::path out_;
  Asked last_;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace sextant
