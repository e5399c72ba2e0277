// Reads the pre-tokenizer of a tokenizer.json.
#include "text/tokenizer_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

PretokenStage cut_by(std::unique_ptr<Splitter> splitter) {
  return {.splitter = std::move(splitter)};
}

PretokenStage byte_level_stage(const JsonField& field) {
  PretokenStage stage;
  if (field["add_prefix_space"].flag(true)) {
    stage.prefix = " ";
    stage.scheme = PrefixScheme::always;
  }
  if (field["use_regex"].flag(true)) stage.splitter = known_splitter(kGpt2Pattern);
  return stage;
}

SplitKeep keep_of(const JsonField& behavior, SplitKeep if_missing) {
  if (behavior.is_null()) return if_missing;
  const std::string& name = behavior.text();
  if (name == "Isolated") return SplitKeep::everything;
  if (name == "Removed") return SplitKeep::gaps_only;
  if (name == "MergedWithPrevious") return SplitKeep::joined_to_previous;
  if (name == "MergedWithNext") return SplitKeep::joined_to_next;
  if (name == "Contiguous") return SplitKeep::runs_joined;
  behavior.refuse(fmt::format("is \"{}\"", name),
                  "\"Isolated\", \"Removed\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"");
}

PretokenStage split_stage(const JsonField& field) {
  field["behavior"].text();
  SplitPattern pattern{.keep = keep_of(field["behavior"], SplitKeep::everything)};
  if (field["invert"].flag(false)) {
    if (pattern.keep == SplitKeep::gaps_only)
      pattern.keep = SplitKeep::matches_only;
    else if (pattern.keep != SplitKeep::everything)
      field["invert"].refuse("is true", "\"invert\" with \"Removed\" or \"Isolated\" only");
  }
  const JsonField given = field["pattern"];
  pattern.kind = given["Regex"].is_null() ? PatternKind::literal : PatternKind::regex;
  pattern.text = given[pattern.kind == PatternKind::regex ? "Regex" : "String"].text();
  return cut_by(make_splitter(pattern, given.place()));
}

std::string one_character(const JsonField& field) {
  const std::string& text = field.text();
  field.expect(!text.empty() && decode_valid_utf8(text.data()).size == text.size(), "one character");
  return text;
}

PrefixScheme scheme_of(const JsonField& metaspace) {
  const JsonField scheme = metaspace["prepend_scheme"];
  // Files from before tokenizers 0.15 say it in another way.
  if (scheme.is_null()) return metaspace["add_prefix_space"].flag(true) ? PrefixScheme::always : PrefixScheme::never;
  if (scheme.text() == "always") return PrefixScheme::always;
  if (scheme.text() == "first") return PrefixScheme::first;
  if (scheme.text() == "never") return PrefixScheme::never;
  scheme.refuse(fmt::format("is \"{}\"", scheme.text()), "\"always\", \"first\" or \"never\"");
}

PretokenStage metaspace_stage(const JsonField& field) {
  std::string sign = one_character(field["replacement"]);
  PretokenStage stage{.space = sign, .prefix = sign, .scheme = scheme_of(field)};
  if (field["split"].flag(true))
    stage.splitter = character_splitter(decode_valid_utf8(sign.data()).code, SplitKeep::joined_to_next);
  return stage;
}

// Some kinds are two stages.
PretokenStages stages_of(const JsonField& step) {
  std::string type = step.type();
  PretokenStages stages;
  if (type == "ByteLevel") {
    stages.push_back(byte_level_stage(step));
  } else if (type == "Split") {
    stages.push_back(split_stage(step));
  } else if (type == "Digits") {
    bool single = step["individual_digits"].flag(false);
    stages.push_back(cut_by(digit_splitter(single ? DigitRuns::single : DigitRuns::whole)));
  } else if (type == "Metaspace") {
    stages.push_back(metaspace_stage(step));
  } else if (type == "Punctuation") {
    stages.push_back(cut_by(punctuation_splitter(keep_of(step["behavior"], SplitKeep::everything))));
  } else if (type == "Whitespace") {
    stages.push_back(cut_by(word_splitter()));
  } else if (type == "WhitespaceSplit") {
    stages.push_back(cut_by(white_space_splitter()));
  } else if (type == "BertPreTokenizer") {
    stages.push_back(cut_by(white_space_splitter()));
    stages.push_back(cut_by(punctuation_splitter(SplitKeep::everything)));
  } else if (type == "CharDelimiterSplit") {
    std::string delimiter = one_character(step["delimiter"]);
    stages.push_back(cut_by(character_splitter(decode_valid_utf8(delimiter.data()).code, SplitKeep::gaps_only)));
  } else {
    step.refuse(fmt::format("a {} pre-tokenizer", type),
                "ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer or "
                "CharDelimiterSplit");
  }
  return stages;
}

}  // namespace

void read_pre_tokenizer(const JsonField& field, TokenizerParts& parts) {
  parts.unit = BpeUnit::character;
  if (field.is_null()) return;
  std::vector<JsonField> steps = field.type() == "Sequence" ? field["pretokenizers"].items() : std::vector{field};
  for (size_t i = 0; i < steps.size(); ++i) {
    for (PretokenStage& stage : stages_of(steps[i])) parts.stages.push_back(std::move(stage));
    if (steps[i].type() != "ByteLevel") continue;
    if (parts.byte_names) steps[i].refuse("a second ByteLevel pre-tokenizer", "one");
    parts.byte_names = true;
    // As the last step it leaves bytes as they are. Others behind it would see the characters that stand for bytes.
    if (i + 1 == steps.size())
      parts.unit = BpeUnit::byte;
    else
      parts.stages.push_back({.to_byte_alphabet = true});
  }
  // A stage that does nothing at the end would keep the one before it from handing over its pieces in batches.
  if (!parts.stages.empty() && !parts.stages.back().changes_text() && !parts.stages.back().splitter)
    parts.stages.pop_back();
}

}  // namespace sextant
