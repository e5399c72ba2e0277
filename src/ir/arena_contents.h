// The contents of every byte of a Program's arenas during a dry run of its schedule. All ranges that are ever touched
// are known in advance. The bytes between two neighbouring range ends are always written together, so one number is
// kept for each such segment, and a range is a run of segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sextant {

// Bytes [begin, end), counted so that no two arenas have one in common.
struct ByteRange {
  int64_t begin = 0, end = 0;
};

// The segments [first, last) of a range.
struct SegmentRun {
  int32_t first = 0, last = 0;
  bool empty() const { return first >= last; }
  bool meets(const SegmentRun& other) const { return first < other.last && other.first < last; }
};

class ArenaContents {
 public:
  using Content = int64_t;  // a number for what one run of one op has written; 0: nothing known

  // Of all ranges that will be asked for; `runs` becomes theirs, in the same order.
  ArenaContents(const std::vector<ByteRange>& ranges, std::vector<SegmentRun>& runs) {
    std::vector<int64_t> bounds;
    for (const ByteRange& range : ranges) {
      if (range.begin >= range.end) continue;
      bounds.push_back(range.begin);
      bounds.push_back(range.end);
    }
    std::ranges::sort(bounds);
    bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
    auto segment = [&](int64_t byte) {
      return static_cast<int32_t>(std::ranges::lower_bound(bounds, byte) - bounds.begin());
    };
    for (const ByteRange& range : ranges)
      runs.push_back(range.begin < range.end ? SegmentRun{segment(range.begin), segment(range.end)} : SegmentRun{});
    contents_.resize(bounds.size(), 0);
  }

  void write(const SegmentRun& run, Content content) {
    std::fill(contents_.begin() + run.first, contents_.begin() + run.last, content);
  }
  bool holds(const SegmentRun& run, Content content) const {
    return std::all_of(contents_.begin() + run.first, contents_.begin() + run.last,
                       [&](Content held) { return held == content; });
  }

 private:
  std::vector<Content> contents_;  // by segment
};

}  // namespace sextant
