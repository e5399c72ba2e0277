// Messages where a tokenizer's file does not exist, or a directory is named.
#include "text/tokenizer_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_fixtures.h"

namespace sextant {
namespace {

std::string refusal_to_load(const std::filesystem::path& path) {
  try {
    Tokenizer::load(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

void expect_parts(const std::string& whole, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts) EXPECT_NE(whole.find(part), std::string::npos) << part << " is not in " << whole;
}

TEST(TokenizerFiles, ANameOfTheHubIsNotDownloaded) {
  expect_parts(refusal_to_load("gpt2"), {"gpt2: file not found; expected a tokenizer.json", "nothing is downloaded",
                                         "hf download gpt2 tokenizer.json --local-dir gpt2", "gpt2/tokenizer.json"});
  expect_parts(refusal_to_load("meta-llama/Llama-3.1-8B"),
               {"hf download meta-llama/Llama-3.1-8B tokenizer.json --local-dir Llama-3.1-8B"});
  for (const char* file : {"nowhere/tokenizer.json", "/nowhere/gpt2", "./gpt2", "a/b/c", "tokens.idx"})
    EXPECT_EQ(refusal_to_load(file).find("downloaded"), std::string::npos) << file;
}

TEST(TokenizerFiles, ADirectoryIsAnsweredWithItsFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("sextant-tokenizer-files-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder / "tokenizer.json");
  expect_parts(refusal_to_load(folder), {"is a directory without a tokenizer"});
  std::filesystem::copy_file(tokenizer_fixture("gpt2_style.json"), folder / "tokenizer.json");
  expect_parts(refusal_to_load(folder), {"is a directory; expected", "name the file: ", "tokenizer.json"});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sextant
