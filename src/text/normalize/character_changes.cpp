// Normalizers that change characters one by one.
#include "text/normalize/normalizer.h"
#include "text/unicode/unicode_normal.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

class CharacterNormalizer : public Normalizer {
 public:
  explicit CharacterNormalizer(CharacterMap map) {
    for (auto& [code, text] : map) {
      if (changes_.size() <= code) changes_.resize(code + 1, 0);
      texts_.push_back(std::move(text));
      changes_[code] = static_cast<uint32_t>(texts_.size());
    }
  }

  void apply(NormalText& text) const override {
    const std::string& old = text.text;
    size_t at = unchanged(old, 0);
    if (at == old.size()) return;
    std::string out(old, 0, at);
    out.reserve(old.size() + old.size() / 8);
    while (at < old.size()) {
      Utf8Char c = decode_valid_utf8(old.data() + at);
      const std::string& change = texts_[changes_[c.code] - 1];
      if (out.empty() && change.empty()) text.dropped_from_front(1);
      out += change;
      at += c.size;
      size_t end = unchanged(old, at);
      out.append(old, at, end - at);
      at = end;
    }
    text.text = std::move(out);
  }

 private:
  // The first character from `at` on that changes.
  size_t unchanged(const std::string& text, size_t at) const {
    while (at < text.size()) {
      Utf8Char c = decode_valid_utf8(text.data() + at);
      if (c.code < changes_.size() && changes_[c.code] != 0) break;
      at += c.size;
    }
    return at;
  }

  std::vector<uint32_t> changes_;  // by code point: 0, or the place in texts_ plus one
  std::vector<std::string> texts_;
};

CharacterMap map_of(CharChange change) {
  switch (change) {
    case CharChange::lowercase:
      return lowercase_map();
    case CharChange::nmt:
      return nmt_map();
    case CharChange::strip_accents:
      return accents_map();
    case CharChange::bert_accents:
      return bert_accents_map();
    case CharChange::bert_clean:
      return bert_clean_map();
    case CharChange::bert_chinese:
      return bert_chinese_map();
  }
  __builtin_unreachable();
}

}  // namespace

NormalizerPtr character_normalizer(CharChange change) {
  return std::make_shared<CharacterNormalizer>(map_of(change));
}

}  // namespace sextant
