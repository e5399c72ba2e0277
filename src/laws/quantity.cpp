#include "laws/quantity.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace sextant {

namespace {

// 0 for what is no suffix.
double factor_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix.size() > 1) return 0;
  switch (suffix.front() & ~0x20) {  // upper case
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'B':
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    case 'P':
      return 1e15;
    case 'E':
      return 1e18;
    default:
      return 0;
  }
}

std::optional<double> value_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  double number = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view suffix(end, static_cast<size_t>(last - end));
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  double value = number * factor_of(suffix);
  if (!std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

// Text from the user made safe for a message: its first 24 bytes, with '?' for all that is not printable ASCII.
std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 24)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 24 ? out + "…" : out;
}

}  // namespace

double parse_quantity(std::string_view text, std::string_view place) {
  std::optional<double> value = value_of(text);
  if (!value)
    throw UserError(Complaint{.place = std::string(place),
                              .got = fmt::format("\"{}\" is not a positive number", shown(text)),
                              .expected = "a number such as 70B, 1.4T or 1e24",
                              .hint = ""});
  return *value;
}

std::string human_quantity(double value) {
  static constexpr const char* kUnits[] = {"", " K", " M", " B", " T"};
  int unit = 0;
  // 999.5 would be printed as 1e+03.
  while (value >= 999.5 && unit < 4) value /= 1000, ++unit;
  return human_ratio(value) + kUnits[unit];
}

std::string human_ratio(double ratio) {
  return ratio < 999.5 ? fmt::format("{:.3g}", ratio) : fmt::format("{:.0f}", ratio);
}

std::string human_flops(double flops) {
  std::string text = fmt::format("{:.3g}", flops);
  size_t plus = text.find('+');
  return plus == std::string::npos ? text : text.erase(plus, 1);
}

}  // namespace sextant
