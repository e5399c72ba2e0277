// The end token that `data tokenize` writes behind documents.
#include <gtest/gtest.h>

#include "base/files.h"
#include "checkout.h"
#include "command.h"

namespace sextant {
namespace {

TEST(Tokenize, EndOfTextMustBeKnown) {
  ScratchPlace place("tokenize");
  std::string text = read_file(std::string(checkout::kSources) + "/tests/fixtures/tokenizer/gpt2_style.json"),
              name = "<|endoftext|>";
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
    text.replace(at, name.size(), "<stop>");
  write_file_atomically(place / "tokenizer.json", text);
  write_file_atomically(place / "text.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  auto tokenize = [&](const std::string& more) {
    return run_command(fmt::format("data tokenize {} --tokenizer {} --out {} --threads 1 {}", place / "text.jsonl",
                                   place / "tokenizer.json", place / "out.bin", more));
  };
  Outcome refused = tokenize("");
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_NE(refused.output.find("--end-of-text names its id"), std::string::npos) << refused.output;
  EXPECT_EQ(tokenize("--end-of-text 999999999").code, 2);
  EXPECT_EQ(tokenize("--end-of-text 7").code, 0);
  EXPECT_EQ(read_file(place / "out.bin").substr(2, 2), std::string("\7\0", 2));
  write_file_atomically(place / "tokenizer_config.json", R"({"eos_token": "<stop>"})");
  EXPECT_EQ(tokenize("").code, 0);
  EXPECT_EQ(read_file(place / "out.bin").substr(2, 2), std::string("\0\0", 2));
}

TEST(Tokenize, DocumentsThatCannotBeReadAreSkippedOnRequest) {
  ScratchPlace place("tokenize-skip");
  write_file_atomically(place / "text.jsonl", "{\"text\": \"a\"}\nnonsense\n{\"text\": \"b\"}\n");
  std::string tokenize = fmt::format(
      "data tokenize {} --tokenizer {}/tests/fixtures/tokenizer/gpt2_style.json --out {} "
      "--threads 1 --on-error ",
      place / "text.jsonl", checkout::kSources, place / "out.bin");
  Outcome stopped = run_command(tokenize + "stop"), skipped = run_command(tokenize + "skip");
  EXPECT_EQ(stopped.code, 2);
  EXPECT_NE(stopped.output.find("text.jsonl:2"), std::string::npos) << stopped.output;
  EXPECT_EQ(skipped.code, 0);
  EXPECT_NE(skipped.output.find("2 documents,"), std::string::npos) << skipped.output;
  EXPECT_NE(skipped.output.find("1 document could not be read and was skipped"), std::string::npos) << skipped.output;
  EXPECT_NE(skipped.output.find("text.jsonl:2"), std::string::npos) << skipped.output;
  EXPECT_EQ(run_command(tokenize + "ignore").code, 2);
}

}  // namespace
}  // namespace sextant
