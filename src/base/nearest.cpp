#include "base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace sextant {

namespace {

// Capitals are no slip of their own: H100-SXM is h100-sxm.
std::string in_small_letters(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Row i holds the distances of the first i characters of a to all beginnings of b; a swap looks two rows back.
  std::array<std::vector<int>, 3> rows;
  for (auto& row : rows) row.resize(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<int>& now = rows[i % 3];
    const std::vector<int>& before = rows[(i + 2) % 3];
    const std::vector<int>& before_that = rows[(i + 1) % 3];
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({before[j] + 1, now[j - 1] + 1, replaced});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before_that[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> known) {
  constexpr size_t kLongestName = 100;  // nobody mistypes so much, and the distance costs length squared
  if (name.size() > kLongestName) return std::nullopt;
  auto last_part = [](std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); };
  const std::string lowered = in_small_letters(name);
  std::string_view last = last_part(lowered);
  int best = std::max(1, static_cast<int>(last.size()) / 3) + 1;
  std::optional<std::string_view> found;
  for (std::string_view candidate : known) {
    const std::string small = in_small_letters(candidate);
    int whole = edit_distance(lowered, small);
    int only_last = edit_distance(last, last_part(small)) + 1;  // a wrong section is one slip
    int distance = std::min(whole, only_last);
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

namespace {

enum class Continued { anyhow, by_a_word };  // "h100" by "-sxm" is a word more; "head" by "s" is not

std::vector<std::string_view> names_that_continue(std::string_view name, std::span<const std::string_view> known,
                                                  Continued how) {
  constexpr std::string_view kSeparators = "-_.";
  const std::string lowered = in_small_letters(name);
  std::vector<std::string_view> found;
  for (std::string_view each : known) {
    if (each.size() <= name.size() || !in_small_letters(each).starts_with(lowered)) continue;
    if (how == Continued::anyhow || kSeparators.find(each[name.size()]) != kSeparators.npos) found.push_back(each);
  }
  return found;
}

std::string offer(std::vector<std::string_view> names) {
  constexpr size_t kMost = 6;
  if (names.size() == 1) return fmt::format("did you mean {}?", names[0]);
  if (names.size() > kMost) {
    names.resize(kMost);
    return fmt::format("did you mean one of {}, …?", fmt::join(names, ", "));
  }
  std::string_view last = names.back();
  names.pop_back();
  return fmt::format("did you mean {} or {}?", fmt::join(names, ", "), last);
}

}  // namespace

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  constexpr size_t kShortestBeginning = 3;
  auto meant = nearest(name, known);
  if (meant && in_small_letters(*meant).starts_with(in_small_letters(name))) return offer({*meant});
  if (name.size() >= kShortestBeginning) {
    std::vector<std::string_view> longer =
        names_that_continue(name, known, meant ? Continued::by_a_word : Continued::anyhow);
    if (!longer.empty()) return offer(std::move(longer));
  }
  return meant ? offer({*meant}) : "";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  std::vector<std::string_view> views(known.begin(), known.end());
  return did_you_mean(name, std::span<const std::string_view>(views));
}

}  // namespace sextant
