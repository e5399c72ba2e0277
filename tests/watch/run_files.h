// Runs as files: what train writes, made by the test.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sextant {

class RunFiles {
 public:
  explicit RunFiles(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("sextant-watch-{}-{}", name, ::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~RunFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  void append(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file, std::ios::app) << text;
  }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file, std::ios::trunc) << text;
  }

 private:
  std::filesystem::path path_;
};

inline std::string metrics_line(int64_t step, double loss, const std::string& more = "") {
  return fmt::format(R"({{"step":{},"loss":{},"tokens":{},"step_s":0.5,"mfu":null{}}})", step, loss, step * 100, more) +
         "\n";
}

}  // namespace sextant
