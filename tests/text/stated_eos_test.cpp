// Which token ends a document, by the files beside a tokenizer.json.
#include "text/stated_eos.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/files.h"
#include "tokenizer_fixtures.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class StatedEosTest : public testing::Test {
 protected:
  StatedEosTest() {
    std::string pattern = (fs::temp_directory_path() / "sextant-eos-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::copy_file(tokenizer_fixture("gpt2_style.json"), root_ / "tokenizer.json");
  }
  ~StatedEosTest() override { fs::remove_all(root_); }
  void write(const char* name, std::string_view text) { write_file_atomically(root_ / name, text); }
  std::optional<uint32_t> eos() const { return Tokenizer::load(root_ / "tokenizer.json").eos_id(); }
  std::string complaint() const {
    try {
      eos();
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  fs::path root_;
};

TEST_F(StatedEosTest, TheFilesAreAskedInOrder) {
  EXPECT_EQ(eos(), 0u);  // by its name, <|endoftext|>
  write("generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(eos(), 7u);
  write("config.json", R"({"eos_token_id": [999999999, 9, 8]})");
  EXPECT_EQ(eos(), 9u);  // the first that the tokenizer has
  uint32_t a = *Tokenizer::load(root_ / "tokenizer.json").token_id("a"),
           b = *Tokenizer::load(root_ / "tokenizer.json").token_id("b");
  write("special_tokens_map.json", R"({"eos_token": {"content": "a", "lstrip": false}})");
  EXPECT_EQ(eos(), a);
  write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(eos(), a);
  write("tokenizer_config.json", R"({"eos_token": "b"})");
  EXPECT_EQ(eos(), b);
}

TEST_F(StatedEosTest, WhatCannotBeFollowedIsRefused) {
  std::string place = (root_ / "tokenizer_config.json").string();
  write("tokenizer_config.json", R"({"eos_token": "<no such token>"})");
  EXPECT_EQ(complaint(),
            place + " eos_token: '<no such token>' is not a token of tokenizer.json; expected one of its tokens");
  write("tokenizer_config.json", R"({"eos_token": 3})");
  EXPECT_NE(complaint(), "");
  write("tokenizer_config.json", "{");
  EXPECT_NE(complaint(), "");
  write("tokenizer_config.json", R"({"eos_token_id": "a"})");
  EXPECT_NE(complaint(), "");
}

}  // namespace
}  // namespace sextant
