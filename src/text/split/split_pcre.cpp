// Any other pattern, run by PCRE2.
#include "text/split/pcre_pattern.h"
#include "text/split/split.h"
#include "text/split/split_behavior.h"

namespace sextant {

namespace {

class PcreSplitter : public Splitter {
 public:
  PcreSplitter(const SplitPattern& pattern, std::string_view place) : matches_(pattern, place), keep_(pattern.keep) {}

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    PcreSearch search(matches_, text, cursor.text);
    cursor.text = search.seen();
    auto next = [&](size_t at) { return search.next(at); };
    return BehaviorCut(text, keep_, next)(cursor, pieces);
  }

 private:
  PcrePattern matches_;
  SplitKeep keep_;
};

}  // namespace

std::unique_ptr<Splitter> pcre_splitter(const SplitPattern& pattern, std::string_view place) {
  return std::make_unique<PcreSplitter>(pattern, place);
}

std::unique_ptr<Splitter> make_splitter(const SplitPattern& pattern, std::string_view place) {
  if (pattern.kind == PatternKind::regex)
    if (std::unique_ptr<Splitter> known = known_splitter(pattern.text, pattern.keep)) return known;
  return pcre_splitter(pattern, place);
}

}  // namespace sextant
