// Text that is not UTF-8: where it is not, in which encoding it is likely to be, and what converts it. Encodings have
// the names that iconv knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant {

inline constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";  // a byte order mark, which some editors put first

struct BrokenUtf8 {
  size_t at = 0;              // the first byte that is not UTF-8
  std::string_view encoding;  // likely; "UTF-8": it is, but for a few bytes; empty: unknown
};

// nullopt: the text is UTF-8.
std::optional<BrokenUtf8> find_broken_utf8(std::string_view text);

// UTF-16 or UTF-32, by the byte order mark or the places of zeros and other control characters at the front of a file;
// empty: neither.
std::string_view wide_encoding(std::string_view front);

// "the text is not UTF-8 (likely ISO-8859-1)"
std::string not_utf8(const BrokenUtf8& broken, std::string_view what = "the text");

// About the byte `at` of a file, counted after decompression. `place` names the file, and the document in it.
Complaint complaint_about_encoding(const std::filesystem::path& file, std::string_view place, int64_t at,
                                   std::string_view encoding);

// The command that converts the file, as a sentence.
std::string conversion_hint(const std::filesystem::path& file, std::string_view encoding);

}  // namespace sextant
