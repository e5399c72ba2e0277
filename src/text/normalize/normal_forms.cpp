// The four normalization forms of Unicode.
#include <algorithm>

#include "text/normalize/normalizer.h"
#include "text/unicode/unicode_normal.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// Hangul syllables are calculated (the Unicode Standard, section 3.12).
namespace hangul {

constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;

bool is_syllable(char32_t code) {
  return code >= kSyllable && code < kSyllable + kSyllables;
}

void decompose(char32_t code, std::u32string& out) {
  char32_t index = code - kSyllable;
  out += kLead + index / (kVowels * kTails);
  out += kVowel + index / kTails % kVowels;
  if (index % kTails != 0) out += kTail + index % kTails;
}

bool joins_previous(char32_t code) {
  return (code >= kVowel && code < kVowel + kVowels) || (code > kTail && code < kTail + kTails);
}

// 0 where the two do not compose.
char32_t composed(char32_t first, char32_t second) {
  if (first >= kLead && first < kLead + kLeads && second >= kVowel && second < kVowel + kVowels)
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  bool open = is_syllable(first) && (first - kSyllable) % kTails == 0;
  return open && second > kTail && second < kTail + kTails ? first + (second - kTail) : 0;
}

}  // namespace hangul

class FormNormalizer : public Normalizer {
 public:
  explicit FormNormalizer(NormalForm form)
      : kind_(form == NormalForm::nfkc || form == NormalForm::nfkd ? Decomposition::compatible
                                                                   : Decomposition::canonical),
        composes_(form == NormalForm::nfc || form == NormalForm::nfkc) {
    for (char32_t code = 0; code < kTableSize; ++code) settled_[code] = is_settled(code);
  }

  void apply(NormalText& text) const override {
    const std::string& old = text.text;
    if (!old.empty())
      text.first_became = std::max<size_t>(1, tables_.decomposed(decode_valid_utf8(old.data()).code, kind_).size());
    std::string out;
    size_t done = 0;
    std::u32string run;
    for (size_t at = 0; (at = next_unsettled(old, at)) < old.size();) {
      // A run is what may act on each other: from the last settled character to the next.
      size_t begin = at > done ? static_cast<size_t>(previous_utf8(old.data() + at) - old.data()) : at;
      size_t end = at;
      while (end < old.size() && !settled(decode_valid_utf8(old.data() + end).code))
        end += decode_valid_utf8(old.data() + end).size;
      out.append(old, done, begin - done);
      normalize_run(std::string_view(old).substr(begin, end - begin), run, out);
      done = at = end;
    }
    if (done == 0) return;
    out.append(old, done);
    text.text = std::move(out);
  }

 private:
  static constexpr size_t kTableSize = 0x110000;

  // Whether a character stays as it is and nothing before it acts on it.
  bool is_settled(char32_t code) const {
    if (tables_.combining(code) != 0) return false;
    if (hangul::is_syllable(code)) return composes_;
    std::u32string_view parts = tables_.decomposed(code, kind_);
    if (!composes_) return parts.empty();
    bool comes_back = parts == tables_.decomposed(code, Decomposition::canonical) && tables_.is_composite(code);
    return (parts.empty() || comes_back) && !tables_.composes_with_previous(code) && !hangul::joins_previous(code);
  }

  bool settled(char32_t code) const { return settled_[code]; }

  size_t next_unsettled(const std::string& text, size_t at) const {
    while (at < text.size()) {
      if (static_cast<uint8_t>(text[at]) < 0x80) {
        at += ascii_prefix(std::string_view(text).substr(at));
        continue;
      }
      Utf8Char c = decode_valid_utf8(text.data() + at);
      if (!settled(c.code)) break;
      at += c.size;
    }
    return at;
  }

  void normalize_run(std::string_view text, std::u32string& run, std::string& out) const {
    run.clear();
    for (size_t at = 0; at < text.size();) {
      Utf8Char c = decode_valid_utf8(text.data() + at);
      at += c.size;
      std::u32string_view parts = tables_.decomposed(c.code, kind_);
      if (hangul::is_syllable(c.code))
        hangul::decompose(c.code, run);
      else if (parts.empty())
        run += c.code;
      else
        run += parts;
    }
    put_marks_in_order(run);
    if (composes_) compose(run);
    for (char32_t code : run) append_utf8(code, out);
  }

  void put_marks_in_order(std::u32string& run) const {
    for (auto mark = run.begin(); mark != run.end();) {
      auto end = std::find_if(mark, run.end(), [&](char32_t code) { return tables_.combining(code) == 0; });
      std::stable_sort(mark, end, [&](char32_t a, char32_t b) { return tables_.combining(a) < tables_.combining(b); });
      mark = end == run.end() ? end : end + 1;
    }
  }

  // Each character composes with the last that is not a mark, unless one between the two holds it off.
  void compose(std::u32string& run) const {
    size_t kept = 0, starter = run.size();
    uint8_t last_order = 0;  // of what stands directly before; 0: the starter itself
    for (char32_t code : run) {
      uint8_t order = tables_.combining(code);
      bool adjacent = starter < run.size() && starter + 1 == kept;
      bool held_off = !adjacent && last_order >= order;
      if (starter < run.size() && !held_off) {
        char32_t composed = hangul::composed(run[starter], code);
        if (composed == 0) composed = tables_.composed(run[starter], code);
        if (composed != 0) {
          run[starter] = composed;
          continue;
        }
      }
      if (order == 0) starter = kept;
      last_order = order;
      run[kept++] = code;
    }
    run.resize(kept);
  }

  const NormalTables& tables_ = NormalTables::get();
  Decomposition kind_;
  bool composes_;
  std::vector<bool> settled_ = std::vector<bool>(kTableSize);
};

}  // namespace

// Its table takes a while to make, so there is one of each.
NormalizerPtr form_normalizer(NormalForm form) {
  switch (form) {
    case NormalForm::nfc: {
      static const NormalizerPtr kNfc = std::make_shared<FormNormalizer>(NormalForm::nfc);
      return kNfc;
    }
    case NormalForm::nfd: {
      static const NormalizerPtr kNfd = std::make_shared<FormNormalizer>(NormalForm::nfd);
      return kNfd;
    }
    case NormalForm::nfkc: {
      static const NormalizerPtr kNfkc = std::make_shared<FormNormalizer>(NormalForm::nfkc);
      return kNfkc;
    }
    case NormalForm::nfkd: {
      static const NormalizerPtr kNfkd = std::make_shared<FormNormalizer>(NormalForm::nfkd);
      return kNfkd;
    }
  }
  __builtin_unreachable();
}

}  // namespace sextant
