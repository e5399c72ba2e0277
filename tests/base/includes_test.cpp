// The house is held to its plan: a room includes only what stands below it, files stay readable, and nobody writes
// heavy headers into light ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = fs::path(SEXTANT_SOURCE_DIR) / "src";

// What each room may include, beside itself. The same order as in CMakeLists.txt.
const std::map<std::string, std::set<std::string>> kMayInclude = [] {
  std::map<std::string, std::set<std::string>> may;
  auto room = [&](const std::string& name, std::initializer_list<std::string> needs) {
    std::set<std::string> all{name};
    for (const std::string& need : needs) all.insert(may.at(need).begin(), may.at(need).end());
    may[name] = all;
  };
  room("base", {});
  room("trace", {"base"});
  room("laws", {"base"});
  room("mesh", {"base"});
  room("ir", {"mesh"});
  room("ops", {"ir"});
  room("nn", {"ops"});
  room("schedule", {"ir"});
  room("cost", {"ops"});
  room("sim", {"cost", "schedule", "trace"});
  room("passes", {"ops", "schedule"});
  room("models", {"nn"});
  room("config", {"models"});
  room("comm", {"base"});
  room("comm/mpi", {"comm"});
  room("comm/nccl", {"comm"});
  room("exec", {"ops", "trace", "comm"});
  room("exec/cpu", {"exec"});
  room("exec/cuda", {"exec/cpu", "comm/nccl"});
  room("ckpt", {"models", "exec"});
  room("data", {"base"});
  room("generate", {"passes", "ckpt", "data"});
  room("plan", {"config", "passes", "sim", "laws"});
  room("train", {"plan", "ckpt", "data"});
  room("observe", {"schedule", "trace"});
  room("bench", {"plan", "exec", "ckpt", "data", "observe"});
  room("report", {"plan", "observe"});
  room("doctor", {"passes", "exec"});
  room("launch", {"base"});
  return may;
}();

std::string room_of(const fs::path& file) {
  return fs::relative(file.parent_path(), kSource).generic_string();
}

std::vector<fs::path> source_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSource))
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") files.push_back(entry.path());
  return files;
}

TEST(House, RoomsIncludeOnlyWhatStandsBelow) {
  std::regex include("#include \"(?!hwy/)([a-z_/]+)/[a-z0-9_]+\\.(h|def|inc)\"");
  for (const fs::path& file : source_files()) {
    std::string room = room_of(file), text = read_file(file);
    ASSERT_TRUE(kMayInclude.contains(room)) << file << ": a room that is not on the plan";
    for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at)
      EXPECT_TRUE(kMayInclude.at(room).contains((*at)[1])) << file << " includes " << (*at)[0];
  }
}

TEST(House, FilesStayReadable) {
  for (const fs::path& file : source_files()) {
    std::string text = read_file(file);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 800) << file;
  }
}

TEST(House, HeavyHeadersStayInSourceFiles) {
  for (const fs::path& file : source_files()) {
    if (file.extension() != ".h") continue;
    std::string text = read_file(file);
    for (const char* heavy : {"nlohmann/json.hpp", "toml++", "pcre2.h", "CLI/CLI.hpp", "hwy/highway.h"})
      EXPECT_EQ(text.find(std::string("<") + heavy), std::string::npos) << file << " includes " << heavy;
  }
}

}  // namespace
}  // namespace sextant
