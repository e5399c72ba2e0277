#include "text/bpe/bpe_alphabet.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

constexpr char32_t kFirstBorrowed = 256;
constexpr size_t kBorrowed = 68;

constexpr bool is_printable_byte(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<char32_t, 256> kCodeOfByte = [] {
  std::array<char32_t, 256> codes{};
  char32_t next = kFirstBorrowed;
  for (unsigned byte = 0; byte < 256; ++byte) codes[byte] = is_printable_byte(byte) ? char32_t{byte} : next++;
  return codes;
}();

constexpr std::array<int16_t, kFirstBorrowed + kBorrowed> kByteOfCode = [] {
  std::array<int16_t, kFirstBorrowed + kBorrowed> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[kCodeOfByte[static_cast<size_t>(byte)]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace

std::string name_of_bytes(std::string_view bytes) {
  std::string name;
  for (char byte : bytes) {
    char32_t code = kCodeOfByte[static_cast<uint8_t>(byte)];
    if (code >= 0x80) name += static_cast<char>(0xC0 | code >> 6);
    name += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
  }
  return name;
}

std::optional<std::string> bytes_of_name(std::string_view name) {
  std::string bytes;
  for (size_t at = 0; at < name.size();) {
    Utf8Char c = decode_valid_utf8(name.data() + at);
    if (c.code >= kByteOfCode.size() || kByteOfCode[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOfCode[c.code]);
    at += c.size;
  }
  return bytes;
}

std::vector<char> bytes_in_alphabet_order() {
  std::vector<char> bytes;
  for (int16_t byte : kByteOfCode)
    if (byte >= 0) bytes.push_back(static_cast<char>(byte));
  return bytes;
}

}  // namespace sextant
