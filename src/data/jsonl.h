// One line of a JSONL file. Enters the line, a JSON object (RFC 8259, in UTF-8); leaves the string under one of its
// keys. Anything else is a UserError with file, line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

struct LinePlace {
  std::string_view file;
  int64_t line = 1;
};

class JsonLineText {
 public:
  explicit JsonLineText(std::string key) : key_(std::move(key)) {}

  // The view holds until the next call.
  std::string_view parse(std::string_view line, LinePlace place);

 private:
  std::string key_;
  std::string text_;
  std::string other_;      // strings that are read over; these two are kept between lines to save allocations
  std::string keys_seen_;  // for the complaint that the key is missing
};

}  // namespace sextant
