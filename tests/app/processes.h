// Runs the program under mpirun, and knows whether that can be done here.
#pragma once

#include <chrono>
#include <string>

#include "checkout.h"
#include "command.h"

namespace sextant {

#ifdef SEXTANT_MPIRUN
inline constexpr const char* kMpirun = SEXTANT_MPIRUN;
#else
inline constexpr const char* kMpirun = "";
#endif

// Whether this build has MPI and mpirun starts anything at all.
inline bool mpirun_works() {
  if (*kMpirun == '\0') return false;
  return std::system(
             fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} -n 1 true >/dev/null 2>&1",
                         kMpirun)
                 .c_str()) == 0;
}

// Open MPI refuses root, and more ranks than cores, unless told. What hangs is ended, and counts as killed.
inline std::string under_mpirun(int ranks, const std::string& environment = "") {
  return fmt::format(
      "{} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 "
      "timeout -k 2 40 {} --oversubscribe -n {}",
      environment, kMpirun, ranks);
}

struct TimedOutcome : Outcome {
  double seconds = 0;
};

inline TimedOutcome timed_command(const std::string& arguments, const std::string& before) {
  auto start = std::chrono::steady_clock::now();
  TimedOutcome timed{run_command(arguments, before)};
  timed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return timed;
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Processes whose command line names this directory, the launcher's among them; or only those that run the program
// itself.
enum class Counted { all, ranks };
inline int processes_in(const std::filesystem::path& directory, Counted counted = Counted::all) {
  int found = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::error_code gone;
    bool is_rank =
        std::filesystem::read_symlink(entry.path() / "exe", gone) == std::filesystem::canonical(checkout::kBinary);
    if (counted == Counted::ranks && !is_rank) continue;
    std::FILE* file = std::fopen((entry.path() / "cmdline").c_str(), "r");
    if (!file) continue;
    char block[4096];
    std::string line(block, std::fread(block, 1, sizeof block, file));
    std::fclose(file);
    found += line.find(directory.string()) != std::string::npos;
  }
  return found;
}

}  // namespace sextant
