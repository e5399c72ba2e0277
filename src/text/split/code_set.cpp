#include "text/split/code_set.h"

#include <algorithm>

namespace sextant {

CodeSet::CodeSet(std::span<const CodeRange> ranges) : ranges_(ranges.begin(), ranges.end()) {
  normalize();
}

void CodeSet::add(const CodeSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalize();
}

CodeSet CodeSet::inverted() const {
  CodeSet out;
  char32_t next = 0;
  for (CodeRange range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) out.ranges_.push_back({next, kLastCode});
  return out;
}

CodeSet CodeSet::both(const CodeSet& other) const {
  CodeSet out;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    CodeRange common{std::max(a->first, b->first), std::min(a->last, b->last)};
    if (common.first <= common.last) out.ranges_.push_back(common);
    if (a->last < b->last)
      ++a;
    else
      ++b;
  }
  return out;
}

bool CodeSet::contains(char32_t code) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), code,
                                [](char32_t c, const CodeRange& range) { return c < range.first; });
  return after != ranges_.begin() && code <= std::prev(after)->last;
}

void CodeSet::normalize() {
  auto earlier = [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; };
  if (!std::is_sorted(ranges_.begin(), ranges_.end(), earlier)) std::sort(ranges_.begin(), ranges_.end(), earlier);
  size_t kept = 0;
  for (CodeRange range : ranges_) {
    if (kept > 0 && range.first <= ranges_[kept - 1].last + 1)
      ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, range.last);
    else
      ranges_[kept++] = range;
  }
  ranges_.resize(kept);
}

}  // namespace sextant
