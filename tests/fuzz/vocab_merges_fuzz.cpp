// Any bytes as vocab.json, merges.txt, tokenizer_config.json and added_tokens.json, with a zero byte after each. Only
// UserError may come out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  auto take = [&] {
    std::string_view part = input.substr(0, std::min(input.find('\0'), input.size()));
    input.remove_prefix(std::min(part.size() + 1, input.size()));
    return std::string(part);
  };
  VocabAndMerges files;
  for (std::string* part : {&files.vocab, &files.merges, &files.config, &files.added}) *part = take();
  try {
    Tokenizer tokenizer(parse_vocab_and_merges(files, "fuzz"));
    tokenizer.decode(tokenizer.encode_with_special(input));
  } catch (const UserError&) {
  }
  return 0;
}
