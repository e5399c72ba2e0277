#include "supervise/launcher_report.h"

#include <algorithm>
#include <charconv>

namespace sextant {

namespace {

// Text between `before` and `after`, searched from `at`, which then moves to the start of `after`.
std::optional<std::string_view> text_between(std::string_view line, std::string_view before, std::string_view after,
                                             size_t& at) {
  size_t from = line.find(before, at);
  if (from == std::string_view::npos) return std::nullopt;
  from += before.size();
  size_t to = line.find(after, from);
  if (to == std::string_view::npos) return std::nullopt;
  at = to;
  return line.substr(from, to - from);
}

}  // namespace

std::optional<LostRank> lost_rank_in(std::string_view output) {
  for (size_t begin = 0; begin < output.size();) {
    size_t end = std::min(output.find('\n', begin), output.size());
    std::string_view line = output.substr(begin, end - begin);
    begin = end + 1;
    size_t at = 0;
    std::optional<std::string_view> number = text_between(line, " noticed that process rank ", " with PID ", at);
    std::optional<std::string_view> host = number ? text_between(line, " on node ", " exited on signal ", at) : number;
    if (!host) continue;
    LostRank lost{.host = std::string(*host)};
    auto [last, bad] = std::from_chars(number->data(), number->data() + number->size(), lost.rank);
    if (bad == std::errc() && last == number->data() + number->size() && lost.rank >= 0) return lost;
  }
  return std::nullopt;
}

}  // namespace sextant
