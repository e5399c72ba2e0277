// Any bytes as a tokenizer.model, and some text to encode with it. Only UserError may come out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string_view text = input.substr(0, 256);
  try {
    Tokenizer tokenizer = Tokenizer::from_sentencepiece(input, "fuzz");
    std::vector<uint32_t> ids = tokenizer.encode(text);
    tokenizer.decode(ids);
    tokenizer.encode("The star \u2581 is e\u0301\u200d\u3000 b\xFF ");
    Tokenizer again = Tokenizer::from_sentencepiece(tokenizer.to_files().front().content, "written");
    BUG_IF(again.encode(text) != ids, "a tokenizer written and read again encodes differently");
  } catch (const UserError&) {
  }
  return 0;
}
