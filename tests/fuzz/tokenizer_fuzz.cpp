// Any bytes as a tokenizer.json, up to the first zero byte, and the rest as text to encode with it. Only UserError may
// come out. A corpus of small good files lets the fuzzer reach what lies behind the parser.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = input.find('\0');
  std::string_view text = end == std::string_view::npos ? input : input.substr(end + 1);
  try {
    Tokenizer tokenizer = Tokenizer::from_json(input.substr(0, end), "fuzz");
    std::vector<uint32_t> ids = tokenizer.encode_with_special(text);
    StreamDecoder decoder(tokenizer);
    for (uint32_t id : ids) decoder.push(id);
    decoder.finish();
    Tokenizer again = Tokenizer::from_json(tokenizer.to_json(), "written");
    BUG_IF(again.encode_with_special(text) != ids, "a tokenizer written and read again encodes differently");
  } catch (const UserError&) {
  }
  return 0;
}
