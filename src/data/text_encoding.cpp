#include "data/text_encoding.h"

#include <algorithm>
#include <array>

#include "base/shell_quoted.h"
#include "data/decompress.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

uint8_t byte_at(std::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]);
}

// Of the text around its first broken byte.
struct ByteCounts {
  size_t ascii_letters = 0;
  size_t utf8 = 0;      // characters of several bytes that are UTF-8
  size_t broken = 0;    // parts that are not
  size_t high = 0;      // bytes from 0x80 on
  size_t controls = 0;  // 0x80 to 0x9F: control characters of ISO-8859, letters and signs of Windows
  size_t upper = 0;     // 0xC0 to 0xDF: capitals in Windows-1251, small letters in KOI8-R
  size_t lower = 0;     // 0xE0 to 0xFF: the other way round
};

ByteCounts count_bytes(std::string_view text) {
  ByteCounts counts;
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = step_utf8(text.substr(at));
    counts.utf8 += step.state == Utf8State::valid && step.size > 1;
    counts.broken += step.state == Utf8State::broken;
    at += step.size;
  }
  for (char c : text) {
    auto byte = static_cast<uint8_t>(c);
    counts.ascii_letters += (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    counts.high += byte >= 0x80;
    counts.controls += byte >= 0x80 && byte < 0xA0;
    counts.upper += byte >= 0xC0 && byte < 0xE0;
    counts.lower += byte >= 0xE0;
  }
  return counts;
}

// Whether all bytes from 0x80 on are parts of characters of two bytes. `begins` and `ends` say what such a character
// begins with and ends with, `kana` which first bytes are those of Japanese syllables; these are counted.
template <class Begins, class Ends, class Kana>
std::optional<double> share_of_kana(std::string_view text, const Begins& begins, const Ends& ends, const Kana& kana) {
  size_t pairs = 0, of_kana = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    uint8_t first = byte_at(text, at);
    if (first < 0x80) continue;
    if (at + 1 == text.size()) break;  // cut by the end of what is looked at
    if (!begins(first) || !ends(byte_at(text, at + 1))) return std::nullopt;
    ++pairs;
    of_kana += kana(first);
    ++at;
  }
  return pairs == 0 ? 0.0 : static_cast<double>(of_kana) / static_cast<double>(pairs);
}

std::string_view double_byte_encoding(std::string_view text) {
  constexpr double kJapanese = 0.2;
  auto sjis = share_of_kana(
      text, [](uint8_t b) { return (b >= 0x81 && b <= 0x9F) || (b >= 0xE0 && b <= 0xFC); },
      [](uint8_t b) { return b >= 0x40 && b != 0x7F && b <= 0xFC; }, [](uint8_t b) { return b == 0x82 || b == 0x83; });
  if (sjis && *sjis > kJapanese) return "SHIFT_JIS";
  auto is_high = [](uint8_t b) { return b >= 0xA1 && b <= 0xFE; };
  auto euc = share_of_kana(text, is_high, is_high, [](uint8_t b) { return b == 0xA4 || b == 0xA5; });
  if (euc && *euc > kJapanese) return "EUC-JP";
  auto gb = share_of_kana(
      text, [](uint8_t b) { return b >= 0x81 && b <= 0xFE; }, [](uint8_t b) { return b >= 0x40 && b != 0x7F; },
      [](uint8_t) { return false; });
  return gb ? "GB18030" : "";
}

std::string_view encoding_around(std::string_view text) {
  const ByteCounts counts = count_bytes(text);
  if (counts.utf8 >= counts.broken && counts.utf8 > 0) return "UTF-8";
  if (counts.high <= counts.ascii_letters) return counts.controls > 0 ? "WINDOWS-1252" : "ISO-8859-1";
  if (std::string_view pairs = double_byte_encoding(text); !pairs.empty()) return pairs;
  if (counts.upper + counts.lower < counts.high / 2) return "";
  return counts.lower > counts.upper ? "WINDOWS-1251" : "KOI8-R";
}

// Shares of bytes at each place of four. In UTF-16 the high bytes of alphabets are control characters: 0 of Latin
// letters, 3 of Greek, 4 of Cyrillic ones, up to 0x1E.
struct PlaceShares {
  std::array<double, 4> zeros{}, controls{};

  explicit PlaceShares(std::string_view text) {
    const auto units = static_cast<double>(text.size() / 4);
    for (size_t at = 0; at < text.size() / 4 * 4; ++at) {
      zeros[at % 4] += (byte_at(text, at) == 0) / units;
      controls[at % 4] += (byte_at(text, at) < 0x20) / units;
    }
  }

  bool are_high(size_t first, size_t second, double share) const {
    return controls[first] > share && controls[second] > share;
  }
  bool are_low(size_t first, size_t second) const {
    constexpr double kFew = 0.1;
    return zeros[first] < kFew && zeros[second] < kFew;
  }
};

// Of text that is not UTF-8: in UTF-16, spaces and line breaks leave zeros at one place of two, in others nowhere.
std::string_view encoding_by_zeros(std::string_view text) {
  constexpr size_t kUnits = 200;  // a line break at least in so many
  std::array<size_t, 2> zeros{};
  for (size_t at = 0; at < text.size(); ++at) zeros[at % 2] += text[at] == '\0';
  auto [even, odd] = zeros;
  if (std::min(even, odd) > 0 || std::max(even, odd) * kUnits < text.size() / 2) return "";
  return even == 0 ? "UTF-16LE" : "UTF-16BE";
}

// `text` without the end of a character that its own end cuts.
std::string_view whole_characters(std::string_view text) {
  constexpr size_t kLongest = 4;
  for (size_t cut = 1; cut < std::min(kLongest, text.size() + 1); ++cut)
    if (byte_at(text, text.size() - cut) >= 0xC0) return text.substr(0, text.size() - cut);
  return text;
}

}  // namespace

std::optional<BrokenUtf8> find_broken_utf8(std::string_view text) {
  constexpr size_t kBefore = 4096, kAfter = 65536;
  if (is_valid_utf8(text)) return std::nullopt;
  size_t at = 0;
  for (Utf8Step step = step_utf8(text); step.state == Utf8State::valid; step = step_utf8(text.substr(at))) {
    at += step.size;
    at += ascii_prefix(text.substr(at));
  }
  size_t from = at - std::min(at, kBefore);
  while (from < at && (byte_at(text, from) & 0xC0) == 0x80) ++from;
  return BrokenUtf8{at, encoding_around(text.substr(from, kBefore + kAfter))};
}

std::string_view wide_encoding(std::string_view front) {
  constexpr std::string_view kZeros("\0\0", 2);
  constexpr double kMost = 0.9, kMany = 0.5;
  if (front.starts_with("\xFF\xFE")) return front.substr(2).starts_with(kZeros) ? "UTF-32LE" : "UTF-16LE";
  if (front.starts_with("\xFE\xFF")) return "UTF-16BE";
  if (front.starts_with(kZeros) && front.substr(2).starts_with("\xFE\xFF")) return "UTF-32BE";
  if (front.size() < 8 || front.find('\0') == std::string_view::npos) return "";
  const PlaceShares shares(front);
  if (shares.are_low(0, 0) && shares.are_high(2, 3, kMost)) return "UTF-32LE";
  if (shares.are_low(3, 3) && shares.are_high(0, 1, kMost)) return "UTF-32BE";
  if (shares.are_low(0, 2) && shares.are_high(1, 3, kMany)) return "UTF-16LE";
  if (shares.are_low(1, 3) && shares.are_high(0, 2, kMany)) return "UTF-16BE";
  return is_valid_utf8(whole_characters(front)) ? "" : encoding_by_zeros(front);
}

std::string not_utf8(const BrokenUtf8& broken, std::string_view what) {
  if (broken.encoding.empty()) return fmt::format("{} is not UTF-8", what);
  if (broken.encoding == "UTF-8") return fmt::format("{} is UTF-8 but for some bytes", what);
  return fmt::format("{} is not UTF-8 (likely {})", what, broken.encoding);
}

Complaint complaint_about_encoding(const std::filesystem::path& file, std::string_view place, int64_t at,
                                   std::string_view encoding) {
  return {.place = fmt::format("{} at byte {}", place, at),
          .got = not_utf8({0, encoding}),
          .expected = "text in UTF-8",
          .hint = conversion_hint(file, encoding)};
}

std::string conversion_hint(const std::filesystem::path& file, std::string_view encoding) {
  const Compression compression = compression_of(file);
  std::filesystem::path bare = compression == Compression::none ? file : file.parent_path() / file.stem();
  std::filesystem::path converted = bare;
  converted.replace_extension(".utf8" + bare.extension().string());
  const std::string to = shell_quoted(converted.string());
  std::string read = compression == Compression::none
                         ? ""
                         : fmt::format("{} -dc {} | ", compression == Compression::gzip ? "gzip" : "zstd",
                                       shell_quoted(file.string()));
  std::string from = compression == Compression::none ? " " + shell_quoted(file.string()) : "";
  if (encoding == "UTF-8")
    return fmt::format(
        "{}iconv -c -f UTF-8 -t UTF-8{} > {} leaves these bytes out; data.on_error = \"skip\" leaves the documents out "
        "that have them",
        read, from, to);
  if (encoding.empty())
    return fmt::format("convert it where its encoding is known: {}iconv -f ENCODING -t UTF-8{} > {}", read, from, to);
  return fmt::format("{}iconv -f {} -t UTF-8{} > {} converts it (iconv -l lists other encodings)", read, encoding, from,
                     to);
}

}  // namespace sextant
