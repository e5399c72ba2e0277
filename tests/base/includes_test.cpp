// The layering of src/: a module includes only what it needs by CMake's own list, files stay readable, and heavy
// headers stay out of light ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = fs::path(checkout::kSources) / "src";

// Module to what it may include: itself and what it needs, directly or through others. CMake wrote the list, bottom
// layer first.
std::map<std::string, std::set<std::string>> allowed_includes() {
  std::map<std::string, std::set<std::string>> allowed;
  std::istringstream list(read_file(checkout::kModuleList));
  for (std::string line; std::getline(list, line);) {
    std::string module = line.substr(0, line.find(':')), need;
    std::set<std::string>& all = allowed[module] = {module};
    std::istringstream needs(line.substr(line.find(':') + 1));
    while (needs >> need) all.insert(allowed.at(need).begin(), allowed.at(need).end());
  }
  return allowed;
}

// The module a folder belongs to: the longest declared name that it begins with.
std::string module_of(std::string folder, const std::map<std::string, std::set<std::string>>& modules) {
  while (!modules.contains(folder) && folder.find('/') != std::string::npos) folder.resize(folder.rfind('/'));
  return modules.contains(folder) ? folder : "";
}

std::vector<fs::path> source_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSource))
    if (std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(entry.path().extension()))
      files.push_back(entry.path());
  return files;
}

TEST(Modules, IncludeOnlyWhatTheyNeed) {
  auto allowed = allowed_includes();
  ASSERT_GT(allowed.size(), 20u);
  int cuda_files = 0;
  std::regex include("#include \"(?!hwy/)([a-z_/]+)/[a-z0-9_]+\\.(h|cuh|def|inc)\"");
  for (const fs::path& file : source_files()) {
    std::string folder = fs::relative(file.parent_path(), kSource).generic_string(), text = read_file(file);
    std::string module = module_of(folder, allowed);
    ASSERT_NE(module, "") << file << ": CMakeLists.txt has no such module";
    cuda_files += file.extension() == ".cu" || file.extension() == ".cuh";
    for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at)
      EXPECT_TRUE(allowed.at(module).contains(module_of((*at)[1], allowed))) << file << " includes " << (*at)[0];
  }
  EXPECT_GT(cuda_files, 20);
}

TEST(Modules, FilesStayReadable) {
  for (const fs::path& file : source_files()) {
    std::string text = read_file(file);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 800) << file;
  }
}

TEST(Modules, HeavyHeadersStayInSourceFiles) {
  for (const fs::path& file : source_files()) {
    if (file.extension() != ".h") continue;
    std::string text = read_file(file);
    for (const char* heavy : {"nlohmann/json.hpp", "toml++", "pcre2.h", "CLI/CLI.hpp", "hwy/highway.h"})
      EXPECT_EQ(text.find(std::string("<") + heavy), std::string::npos) << file << " includes " << heavy;
  }
}

}  // namespace
}  // namespace sextant
