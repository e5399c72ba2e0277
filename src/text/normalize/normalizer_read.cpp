#include "text/normalize/normalizer_read.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/normalize/charsmap.h"
#include "text/split/pcre_pattern.h"

namespace sextant {

namespace {

NormalizerPtr read_replace(const JsonField& field) {
  const JsonField given = field["pattern"];
  const std::string content = field["content"].text();
  const bool is_regex = !given["Regex"].is_null();
  const std::string text = given[is_regex ? "Regex" : "String"].text();
  // An empty string is found between all characters, as an empty regex is.
  if (!is_regex && !text.empty()) return literal_normalizer(text, content);
  SplitPattern pattern{.text = text, .kind = PatternKind::regex};
  return regex_normalizer(std::make_unique<PcrePattern>(pattern, given.place()), content);
}

NormalizerPtr read_strip(const JsonField& field) {
  bool left = field["strip_left"].flag(true), right = field["strip_right"].flag(true);
  if (!left && !right) return nullptr;
  return strip_normalizer(left && right ? StripSide::both : left ? StripSide::left : StripSide::right);
}

// Its four steps, in the order in which they are done.
NormalizerPtr read_bert(const JsonField& field) {
  std::vector<NormalizerPtr> steps;
  bool lowercase = field["lowercase"].flag(true);
  if (field["clean_text"].flag(true)) steps.push_back(character_normalizer(CharChange::bert_clean));
  if (field["handle_chinese_chars"].flag(true)) steps.push_back(character_normalizer(CharChange::bert_chinese));
  if (field["strip_accents"].flag(lowercase)) {
    steps.push_back(form_normalizer(NormalForm::nfd));
    steps.push_back(character_normalizer(CharChange::bert_accents));
  }
  if (lowercase) steps.push_back(character_normalizer(CharChange::lowercase));
  return steps.empty() ? nullptr : sequence_normalizer(std::move(steps));
}

NormalizerPtr read_step(const JsonField& field) {
  std::string type = field.type();
  if (type == "NFC") return form_normalizer(NormalForm::nfc);
  if (type == "NFD") return form_normalizer(NormalForm::nfd);
  if (type == "NFKC") return form_normalizer(NormalForm::nfkc);
  if (type == "NFKD") return form_normalizer(NormalForm::nfkd);
  if (type == "Lowercase") return character_normalizer(CharChange::lowercase);
  if (type == "StripAccents") return character_normalizer(CharChange::strip_accents);
  if (type == "Nmt") return character_normalizer(CharChange::nmt);
  if (type == "Strip") return read_strip(field);
  if (type == "Prepend") return prepend_normalizer(field["prepend"].text());
  if (type == "Replace") return read_replace(field);
  if (type == "BertNormalizer") return read_bert(field);
  if (type == "Precompiled") {
    const JsonField map = field["precompiled_charsmap"];
    return precompiled_normalizer(read_charsmap_base64(map.text(), map.place()));
  }
  field.refuse(fmt::format("a {} normalizer", type),
               "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Prepend, Replace, Precompiled, "
               "BertNormalizer or a Sequence of them");
}

}  // namespace

NormalizerPtr read_normalizer(const JsonField& field) {
  if (field.is_null()) return nullptr;
  if (field.type() != "Sequence") return read_step(field);
  std::vector<NormalizerPtr> steps;
  for (const JsonField& item : field["normalizers"].items())
    if (NormalizerPtr step = read_normalizer(item)) steps.push_back(std::move(step));
  return steps.empty() ? nullptr : sequence_normalizer(std::move(steps));
}

}  // namespace sextant
