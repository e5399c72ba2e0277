// The sources of the program, for tests of how they are written.
#pragma once

#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "checkout.h"

namespace sextant {

inline std::vector<std::filesystem::path> checked_sources() {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const char* folder : {"src", "app"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(checkout::kSources) / folder))
      if (std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(entry.path().extension()))
        files.push_back(entry.path());
  return files;
}

inline bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

}  // namespace sextant
