// HF's split behaviours, over any search: how the matches of a pattern and the gaps between them become pieces.
#pragma once

#include <optional>

#include "text/split/split.h"

namespace sextant {

struct MatchSpan {
  size_t begin, end;
};

// `next_match(at)` finds the first match that begins at byte `at` or later and is not empty there.
template <class NextMatch>
class BehaviorCut {
 public:
  BehaviorCut(std::string_view text, SplitKeep keep, NextMatch next_match)
      : text_(text), keep_(keep), next_match_(std::move(next_match)) {}

  // As Splitter::cut.
  size_t operator()(SplitCursor& cursor, std::span<std::string_view> pieces) const {
    size_t count = 0;
    auto put = [&](size_t begin, size_t end) {
      if (begin != end) pieces[count++] = text_.substr(begin, end - begin);
      cursor.at = end;
    };
    // A match may bring two pieces, itself and the gap before it.
    while (count + 2 <= pieces.size() && cursor.at < text_.size()) {
      MatchSpan match = match_from(cursor.at);
      bool gap = match.begin != cursor.at, found = match.begin != text_.size();
      switch (keep_) {
        case SplitKeep::everything:
          put(cursor.at, match.begin);
          put(match.begin, match.end);
          break;
        case SplitKeep::gaps_only:
          put(cursor.at, match.begin);
          cursor.at = match.end;
          break;
        case SplitKeep::matches_only:
          cursor.at = match.begin;
          put(match.begin, match.end);
          break;
        case SplitKeep::joined_to_previous:
          put(cursor.at, gap && !found ? match.begin : match.end);
          break;
        case SplitKeep::joined_to_next:
          put(cursor.at, match.begin);
          if (found) put(match.begin, end_with_next(match));
          break;
        case SplitKeep::runs_joined:
          put(cursor.at, match.begin);
          if (found) put(match.begin, end_of_run(match));
          break;
      }
    }
    return count;
  }

 private:
  MatchSpan match_from(size_t at) const {
    std::optional<MatchSpan> match = at < text_.size() ? next_match_(at) : std::nullopt;
    return match.value_or(MatchSpan{text_.size(), text_.size()});
  }
  // A match takes the gap behind it, if there is one.
  size_t end_with_next(MatchSpan match) const { return match_from(match.end).begin; }
  size_t end_of_run(MatchSpan match) const {
    for (MatchSpan next = match_from(match.end); next.begin == match.end && next.begin != text_.size();
         next = match_from(match.end))
      match.end = next.end;
    return match.end;
  }

  std::string_view text_;
  SplitKeep keep_;
  NextMatch next_match_;
};

}  // namespace sextant
