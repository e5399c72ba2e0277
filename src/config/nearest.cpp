#include "config/nearest.h"

#include <algorithm>
#include <array>
#include <vector>

namespace sextant {

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
  std::string_view last = last_part(name);
  int best = std::max(1, static_cast<int>(last.size()) / 3) + 1;
  std::optional<std::string_view> found;
  for (std::string_view candidate : known) {
    int whole = edit_distance(name, candidate);
    int only_last = edit_distance(last, last_part(candidate)) + 1;  // a wrong section is one slip
    int distance = std::min(whole, only_last);
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

}  // namespace sextant
