#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "launch/launchers.h"

namespace sextant {

namespace {

constexpr int64_t kMostPart = 1'000'000;  // of minutes, hours or days: the sum stays far within 64 bits

[[noreturn]] void refuse_time(const std::string& text) {
  refuse_request("time limit", fmt::format("\"{}\"", text),
                 "MINUTES, MM:SS, HH:MM:SS, DAYS-HH, DAYS-HH:MM or DAYS-HH:MM:SS, more than 0");
}

int64_t parse_part(std::string_view part, const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || value < 0 || value > kMostPart) refuse_time(text);
  return value;
}

}  // namespace

int64_t warning_seconds(int64_t time_limit) {
  return std::min(kLongestWarning, std::max<int64_t>(1, time_limit / 4));
}

// With days, the parts are hours, minutes, seconds from the left; without, a lone part is minutes and the last of
// several is seconds.
int64_t time_limit_seconds(const std::string& text) {
  std::string_view rest = text;
  int64_t days = 0;
  size_t dash = rest.find('-');
  if (dash != std::string_view::npos) {
    days = parse_part(rest.substr(0, dash), text);
    rest.remove_prefix(dash + 1);
  }
  std::array<int64_t, 3> parts{};
  size_t count = 0;
  for (bool more = true; more; ++count) {
    size_t colon = rest.find(':');
    more = colon != std::string_view::npos;
    if (count == parts.size()) refuse_time(text);
    parts[count] = parse_part(rest.substr(0, colon), text);
    rest.remove_prefix(more ? colon + 1 : rest.size());
  }
  int64_t seconds = dash != std::string_view::npos || count == 3 ? parts[0] * 3600 + parts[1] * 60 + parts[2]
                                                                 : parts[0] * 60 + parts[1];
  seconds += days * 86400;
  if (seconds == 0) refuse_time(text);
  return seconds;
}

}  // namespace sextant
