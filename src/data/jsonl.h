// One JSON text among many: a line of a JSONL file, an element of an array. Enters an object (RFC 8259, in UTF-8);
// leaves the string under one of its keys. Anything else is a UserError with file, number and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

struct JsonPlace {
  std::string_view file;
  int64_t number = 1;
  std::string_view noun = "line";  // what is numbered

  std::string text() const;                // "a.jsonl:17", "a.json: element 17"
  std::string text_at(size_t byte) const;  // "a.jsonl:17:5", "a.json: element 17, byte 5"
};

class JsonText {
 public:
  explicit JsonText(std::string key) : key_(std::move(key)) {}

  // The view holds until the next call.
  std::string_view parse(std::string_view object, JsonPlace place);

 private:
  std::string key_;
  std::string text_;
  std::string other_;      // strings that are read over; these two are kept between calls to save allocations
  std::string keys_seen_;  // for the complaint that the key is missing
};

}  // namespace sextant
