#include "text/sentencepiece/sentencepiece_normalizer.h"

#include "text/unicode/unicode_utf8.h"
#include "text/unigram/piece_trie.h"

namespace sextant {

namespace {

constexpr std::string_view kSpaceSign = "\u2581";

class SentencePieceNormalizer : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceRules rules) : rules_(std::move(rules)) {
    std::vector<std::pair<std::string, uint32_t>> kept;
    for (const std::string& text : rules_.kept) kept.emplace_back(text, 0);
    keeps_some_ = !kept.empty();
    kept_ = PieceTrie(std::move(kept));
  }

  void apply(NormalText& text) const override {
    std::string_view rest = text.text;
    if (rules_.remove_extra_spaces)
      while (!rest.empty()) {
        Step step = step_at(rest);
        if (step.text != " ") break;
        rest.remove_prefix(step.size);
      }
    std::string out;
    out.reserve(rest.size() + rest.size() / 2 + kSpaceSign.size());
    if (rules_.add_dummy_prefix && !rest.empty()) out += kSpaceSign;
    append_rest(rest, out);
    if (rules_.remove_extra_spaces)
      while (out.ends_with(kSpaceSign)) out.resize(out.size() - kSpaceSign.size());
    text.text = std::move(out);
  }

 private:
  struct Step {
    std::string_view text;
    size_t size;  // bytes of the input that it stands for
  };

  void append_rest(std::string_view rest, std::string& out) const {
    bool after_space = rules_.remove_extra_spaces;
    while (!rest.empty()) {
      Step step = step_at(rest);
      rest.remove_prefix(step.size);
      while (after_space && step.text.starts_with(' ')) step.text.remove_prefix(1);
      if (step.text.empty()) continue;
      for (char c : step.text) {
        if (c == ' ')
          out += kSpaceSign;
        else
          out += c;
      }
      after_space = rules_.remove_extra_spaces && step.text.ends_with(' ');
    }
  }

  Step step_at(std::string_view rest) const {
    size_t kept = 0;
    if (keeps_some_) kept_.walk(rest, [&](size_t size, uint32_t) { kept = size; });
    if (kept > 0) return {rest.substr(0, kept), kept};
    if (rules_.charsmap && rules_.charsmap->may_begin(rest[0]))
      if (std::optional<Charsmap::Rule> rule = rules_.charsmap->longest(rest)) return {rule->content, rule->size};
    size_t size = decode_valid_utf8(rest.data()).size;
    return {rest.substr(0, size), size};
  }

  SentencePieceRules rules_;
  PieceTrie kept_;
  bool keeps_some_ = false;
};

}  // namespace

NormalizerPtr sentencepiece_normalizer(SentencePieceRules rules) {
  return std::make_shared<SentencePieceNormalizer>(std::move(rules));
}

}  // namespace sextant
