// Expected texts of a command, and the form of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "command.h"

namespace sextant {

inline void write_text(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline void expect_words(const std::string& text, std::initializer_list<std::string> words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in:\n" << text.substr(0, 3000);
}

inline void expect_refusal(const Outcome& outcome, int code, std::initializer_list<std::string> fragments) {
  EXPECT_EQ(outcome.code, code) << outcome.output.substr(0, 3000);
  expect_words(outcome.output, fragments);
  EXPECT_EQ(outcome.output.find("a bug in sextant"), std::string::npos) << outcome.output.substr(0, 3000);
}

}  // namespace sextant
