// UTF-8: stepping through it, and mending it. Broken bytes become U+FFFD, one for each maximal ill-formed part, which
// is what Python's bytes.decode('utf-8', errors='replace') gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

struct Utf8Char {
  char32_t code;
  uint32_t size;  // bytes
};

// The character at `at`, which must begin a valid one.
inline Utf8Char decode_valid_utf8(const char* at) {
  auto byte = [at](int i) { return static_cast<uint8_t>(at[i]); };
  auto tail = [&](int i) { return static_cast<char32_t>(byte(i) & 0x3F); };
  char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | tail(1), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | tail(1) << 6 | tail(2), 3};
  return {(first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

// Where the character that ends at `end` begins; there must be one.
inline const char* previous_utf8(const char* end) {
  do {
    --end;
  } while ((static_cast<uint8_t>(*end) & 0xC0) == 0x80);
  return end;
}

// Bytes of ASCII at the front, counted eight at a time.
size_t ascii_prefix(std::string_view text);

// `code` must not be a surrogate.
void append_utf8(char32_t code, std::string& out);

enum class Utf8State : uint8_t {
  valid,
  broken,     // no continuation could make it valid
  cut_short,  // the text ends inside what could be a character
};

struct Utf8Step {
  Utf8State state;
  uint32_t size;  // bytes of the character, or of the ill-formed part that one U+FFFD replaces
};

// The character or ill-formed part at the front of `text`, which must not be empty.
Utf8Step step_utf8(std::string_view text);

bool is_valid_utf8(std::string_view text);

// Appends `text` with its broken parts replaced.
void append_mended_utf8(std::string_view text, std::string& out);

}  // namespace sextant
