// A pattern that PCRE2 runs, and its matches in a text as the iterator of HF `tokenizers` finds them: the first match
// may be empty, a later one may not where the one before it ended. A pattern never changes after it is made, so threads
// may share it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "text/split/split.h"
#include "text/split/split_behavior.h"

namespace sextant {

class PcrePattern {
 public:
  // UserError at `place` where PCRE2 cannot compile the pattern or split_translate.h refuses it.
  PcrePattern(const SplitPattern& pattern, std::string_view place);
  ~PcrePattern();

 private:
  friend class PcreSearch;
  struct State;
  std::unique_ptr<State> state_;
};

// One text, searched. `pattern` and `text`, which is valid UTF-8, must outlive it.
class PcreSearch {
 public:
  // `seen` is what an earlier search found out about the same text; unseen: this one finds it out.
  PcreSearch(const PcrePattern& pattern, std::string_view text, SplitCursor::Text seen = SplitCursor::Text::unseen);
  ~PcreSearch();

  SplitCursor::Text seen() const { return seen_; }

  std::optional<MatchSpan> first();  // none in an empty text
  // The first that begins at byte `at`, where a match ended, or later; not an empty one at `at`.
  std::optional<MatchSpan> next(size_t at);

 private:
  bool finds(size_t from);
  MatchSpan found() const;

  struct Data;
  const PcrePattern& pattern_;
  std::string_view text_;
  SplitCursor::Text seen_;
  std::unique_ptr<Data> data_;
};

}  // namespace sextant
