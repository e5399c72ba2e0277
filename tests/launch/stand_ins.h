// Requests to change, and stand-ins for the programs that start ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "launch/launch.h"

namespace sextant {

inline LaunchRequest request(Launcher launcher) {
  LaunchRequest r;
  r.launcher = launcher;
  r.name = "llama-8b";
  r.world_size = 16;
  r.ranks_per_node = 8;
  r.cpus_per_rank = 4;
  r.gpus_per_rank = 1;
  r.config = "configs/llama.toml";
  if (launcher == Launcher::kubernetes) r.container = "registry/sextant:1";
  return r;
}

inline bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// A folder with stand-ins for the launchers: each prints its arguments, one a line.
class StandIns {
 public:
  StandIns() {
    std::string pattern = (std::filesystem::temp_directory_path() / "launch_test.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    for (const char* name : {"srun", "mpirun", "kubectl"}) {
      write_file_atomically(folder_ / name, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
      std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    }
  }
  ~StandIns() { std::filesystem::remove_all(folder_); }

  std::string output_of(const std::string& script, const std::string& arguments = "") const {
    write_file_atomically(folder_ / "script", script);
    std::string command = "cd " + folder_.string() + " && bash -n script && PATH=" + folder_.string() +
                          ":$PATH bash script " + arguments + " > output 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << script;
    return read_file(folder_ / "output");
  }

  void replace(const std::string& name, const std::string& script) const {
    write_file_atomically(folder_ / name, script);
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

 private:
  std::filesystem::path folder_;
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline void expect_refused(const std::function<void(LaunchRequest&)>& spoil, Launcher launcher, std::string_view part) {
  LaunchRequest r = request(launcher);
  spoil(r);
  try {
    ADD_FAILURE() << "took it: " << launch_text(r);
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace sextant
