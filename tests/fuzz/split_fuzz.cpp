// Any bytes as a split pattern, up to the first zero byte, and the rest as text to split by it. Only UserError may come
// out, and pieces must make up the text again.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/split/split.h"
#include "text/unicode/unicode_utf8.h"

namespace {

using namespace sextant;

void split(std::string_view pattern, std::string_view text) {
  std::unique_ptr<Splitter> splitter = pcre_splitter({.text = std::string(pattern)}, "fuzz");
  std::array<std::string_view, 3> pieces;
  std::string joined;
  SplitCursor cursor;
  while (size_t count = splitter->cut(text, cursor, pieces))
    for (size_t i = 0; i < count; ++i) {
      BUG_IF(pieces[i].empty(), "an empty piece");
      joined += pieces[i];
    }
  BUG_IF(joined != text, "the pieces do not make up the text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = input.find('\0');
  std::string text;
  append_mended_utf8(end == std::string_view::npos ? input : input.substr(end + 1), text);
  try {
    split(input.substr(0, end), text);
  } catch (const UserError&) {
  }
  return 0;
}
