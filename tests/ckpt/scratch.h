// A directory of its own for every test, gone afterwards; files and errors as the tests want to see them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant {

class Scratch : public ::testing::Test {
 protected:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sextant-ckpt-XXXXXX").string();
    root = std::filesystem::canonical(::mkdtemp(pattern.data()));
  }
  ~Scratch() override {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  std::filesystem::path root;
};

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// The message of the UserError or RunError that `body` throws; "" when it throws none.
template <class Error, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_IN(part, whole) EXPECT_NE((whole).find(part), std::string::npos) << "in: " << (whole)

}  // namespace sextant
