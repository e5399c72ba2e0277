// Splitters by kinds of characters.
#include <type_traits>

#include "text/split/split.h"
#include "text/split/split_behavior.h"
#include "text/unicode/unicode_classes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

struct IsPunctuation {
  const UnicodeTraits& traits = UnicodeTraits::get();
  bool operator()(char32_t code) const { return traits.of(code).any_of(kPunctuationMark); }
};

struct IsSpace {
  const UnicodeKinds& kinds = UnicodeKinds::get();
  bool operator()(char32_t code) const { return kinds.of(code) == CharKind::space; }
};

template <class Is>
class CharSplitter : public Splitter {
 public:
  CharSplitter(Is is, SplitKeep keep) : is_(is), keep_(keep) {}

  bool cuts_words() const override { return std::is_same_v<Is, IsSpace>; }

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    auto next_match = [&](size_t at) -> std::optional<MatchSpan> {
      while (at < text.size()) {
        Utf8Char c = decode_valid_utf8(text.data() + at);
        if (is_(c.code)) return MatchSpan{at, at + c.size};
        at += c.size;
      }
      return std::nullopt;
    };
    return BehaviorCut(text, keep_, next_match)(cursor, pieces);
  }

 private:
  Is is_;
  SplitKeep keep_;
};

class OneCharacterSplitter : public Splitter {
 public:
  OneCharacterSplitter(char32_t character, SplitKeep keep) : keep_(keep) { append_utf8(character, bytes_); }

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    auto next_match = [&](size_t at) -> std::optional<MatchSpan> {
      size_t found = text.find(bytes_, at);
      if (found == std::string_view::npos) return std::nullopt;
      return MatchSpan{found, found + bytes_.size()};
    };
    return BehaviorCut(text, keep_, next_match)(cursor, pieces);
  }

 private:
  std::string bytes_;
  SplitKeep keep_;
};

class WordSplitter : public Splitter {
 public:
  bool cuts_words() const override { return true; }

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    size_t count = 0;
    while (count < pieces.size() && cursor.at < text.size()) {
      Kind kind = kind_at(text, cursor.at);
      size_t begin = cursor.at;
      while (cursor.at < text.size() && kind_at(text, cursor.at) == kind)
        cursor.at += decode_valid_utf8(text.data() + cursor.at).size;
      if (kind != Kind::space) pieces[count++] = text.substr(begin, cursor.at - begin);
    }
    return count;
  }

 private:
  enum class Kind { word, space, other };

  static Kind kind_at(std::string_view text, size_t at) {
    char32_t code = decode_valid_utf8(text.data() + at).code;
    if (is_word_character(code)) return Kind::word;
    return UnicodeKinds::get().of(code) == CharKind::space ? Kind::space : Kind::other;
  }
};

}  // namespace

std::unique_ptr<Splitter> punctuation_splitter(SplitKeep keep) {
  return std::make_unique<CharSplitter<IsPunctuation>>(IsPunctuation{}, keep);
}

std::unique_ptr<Splitter> white_space_splitter() {
  return std::make_unique<CharSplitter<IsSpace>>(IsSpace{}, SplitKeep::gaps_only);
}

std::unique_ptr<Splitter> character_splitter(char32_t character, SplitKeep keep) {
  return std::make_unique<OneCharacterSplitter>(character, keep);
}

std::unique_ptr<Splitter> word_splitter() {
  return std::make_unique<WordSplitter>();
}

}  // namespace sextant
