// JSON from files we did not write: read as a stream of values, so that nothing grows but what the visitor keeps.
// Text outside the grammar, invalid UTF-8, nesting deeper than kMaxJsonDepth and a key given twice are UserErrors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace sextant {

constexpr int kMaxJsonDepth = 16;

enum class JsonKind { object, array, string, natural, other };

struct JsonValue {
  std::span<const std::string> path;  // the keys that lead to the value; none for the outermost one
  int array_depth = 0;                // arrays between the last key and the value
  JsonKind kind = JsonKind::other;
  std::string_view text;  // of a string
  uint64_t number = 0;    // of a natural: an integer from 0 to 2^64 - 1
};

// Visits every value; an object or array is visited before what it holds. The visitor may throw to end the walk.
void walk_json(std::string_view place, std::string_view text, const std::function<void(const JsonValue&)>& visit);

// The text as a JSON string with its quotes. UserError when it is not UTF-8.
std::string json_string(std::string_view text);

// A name from a hostile file, fit for a message: quoted, escaped, cut when long.
std::string shown(std::string_view name);

}  // namespace sextant
