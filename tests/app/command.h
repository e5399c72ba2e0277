// Runs the program as a person would and keeps what it said.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "checkout.h"

namespace sextant {

struct Outcome {
  int code = -1;       // exit code; 128 + signal when it was killed
  std::string output;  // standard output and error together
};

// `line` is for the shell; "sextant" stands for the program under test. `before` runs first, in the same shell.
inline Outcome run_command(const std::string& arguments, const std::string& before = "") {
  std::string line = fmt::format("{{ {} {} {} ; }} 2>&1", before, checkout::kBinary, arguments);
  std::FILE* pipe = ::popen(line.c_str(), "r");
  Outcome outcome;
  char block[4096];
  for (size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) outcome.output.append(block, n);
  int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// A directory that goes when the test ends.
class ScratchPlace {
 public:
  explicit ScratchPlace(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("sextant-app-{}-{}", name, ::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchPlace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string config_path(const std::string& name) {
  return fmt::format("{}/configs/{}", checkout::kSources, name);
}

// Arguments that train the tiny Llama inside a scratch place.
inline std::string tiny_train(const ScratchPlace& place, const std::string& extra) {
  return fmt::format("train {} --out {} data.cache={} data.stories_bytes=60000 train.threads=1 optimizer.warmup=0 {}",
                     config_path("tiny-llama.toml"), place / "run", place / "cache", extra);
}

}  // namespace sextant
