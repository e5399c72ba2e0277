#include "watch/loss_basis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "config/stored_config.h"
#include "events/run_event.h"
#include "watch/line_tail.h"

namespace sextant {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizerKeys[] = {"data.tokenizer", "data.tokenizer_vocab", "data.format", "model.from",
                                               "model.other_tokenizer"};
constexpr std::string_view kDataKeys[] = {"data.train", "data.weights", "data.stories_bytes", "data.text_key"};
constexpr std::string_view kSplitKeys[] = {"data.validation", "data.validation_fraction", "data.validation_split"};
constexpr std::string_view kNoValidation = "[]";

std::optional<std::string> text_in(const EventDetails& details, std::string_view name) {
  for (const auto& [own, value] : details)
    if (const std::string* text = std::get_if<std::string>(&value); text && own == name) return *text;
  return std::nullopt;
}

std::string value_of(const ConfigValues& config, std::string_view key) {
  auto at = config.find(key);
  return at == config.end() ? "" : at->second;
}

// Two runs, and the first of the keys by which they differ.
struct Pair {
  const RunText& a;
  const RunText& b;
  std::vector<ConfigChange> changes;

  Pair(const RunText& one, const RunText& other) : a(one), b(other) {
    if (a.config && b.config) changes = changes_between(*a.config, *b.config);
  }

  template <size_t N>
  const ConfigChange* change_among(const std::string_view (&keys)[N]) const {
    auto found =
        std::ranges::find_if(changes, [&](const ConfigChange& c) { return std::ranges::count(keys, c.key) > 0; });
    return found == changes.end() ? nullptr : &*found;
  }
  template <size_t N>
  std::string named(const std::string_view (&keys)[N]) const {
    const ConfigChange* change = change_among(keys);
    return change ? " (" + change->text() + ")" : "";
  }

  bool same_tokenizer() const {
    if (a.tokenizer && b.tokenizer) return *a.tokenizer == *b.tokenizer;
    if (change_among(kTokenizerKeys)) return false;
    // One that is trained on the text of the run is another one with other text.
    bool trained =
        a.config && value_of(*a.config, "data.tokenizer") == "\"\"" && value_of(*a.config, "model.from").empty();
    return !trained || !change_among(kDataKeys);
  }
  // Hashes are of ids: they tell texts apart under one tokenizer.
  bool same_data() const {
    static constexpr std::string_view kShares[] = {"data.weights"};
    if (change_among(kShares)) return false;
    if (a.data && b.data && same_tokenizer()) return *a.data == *b.data;
    return !change_among(kDataKeys);
  }
  bool same_validation() const {
    if (change_among(kSplitKeys)) return false;
    bool own_files = a.config && value_of(*a.config, "data.validation") != kNoValidation;
    return own_files || same_data();
  }
};

std::string in_one_line(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool breaks = c == '\n' || c == ' ';
    if (!breaks || (!out.empty() && out.back() != ' ')) out += breaks ? ' ' : c;
  }
  return out;
}

std::string different(std::string_view what, const Pair& pair, const std::string& by) {
  return fmt::format("{} and {} have different {}{}", pair.a.name, pair.b.name, what, by);
}

}  // namespace

RunText text_of(const fs::path& run, std::string name) {
  RunText text{.name = std::move(name), .config = {}, .remark = {}, .tokenizer = {}, .data = {}};
  fs::path file = run / "config.toml";
  // No link is followed out of a run.
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(file, none))) {
    text.remark = fmt::format("{} has no config.toml", text.name);
  } else {
    try {
      text.config = stored_config(file);
    } catch (const UserError& error) {  // no TOML
      text.remark = in_one_line(error.what());
    }
  }
  constexpr size_t kMostBytes = size_t{64} << 20;
  LineTail(run / kEventsFile)
      .read(
          kMostBytes, [] {},
          [&](std::string_view line) {
            if (line.find("\"data\"") == line.npos) return;
            std::optional<RunEvent> event = parse_event(line);
            if (!event || (event->kind != EventKind::start && event->kind != EventKind::resume)) return;
            if (auto tokenizer = text_in(event->details, "tokenizer")) text.tokenizer = tokenizer;
            if (auto data = text_in(event->details, "data")) text.data = data;
          });
  return text;
}

std::string_view field_of(LossMeasure measure) {
  switch (measure) {
    case LossMeasure::loss:
      return "loss";
    case LossMeasure::validation_loss:
      return "validation_loss";
    case LossMeasure::bits_per_byte:
      return "bits_per_byte";
  }
  return "";
}

std::string_view unit_of(LossMeasure measure) {
  return measure == LossMeasure::bits_per_byte ? "bits per byte" : "nats per token";
}

std::string_view words_of(LossMeasure measure) {
  switch (measure) {
    case LossMeasure::loss:
      return "loss";
    case LossMeasure::validation_loss:
      return "validation loss";
    case LossMeasure::bits_per_byte:
      return "bits per byte";
  }
  return "";
}

LossBasis loss_basis_of(const std::vector<RunText>& runs) {
  LossBasis basis;
  for (size_t i = 1; i < runs.size(); ++i) {
    Pair pair(runs[0], runs[i]);
    bool same_tokenizer = pair.same_tokenizer(), same_data = pair.same_data();
    if (same_tokenizer && same_data) continue;
    std::string why = !same_tokenizer ? different("tokenizers", pair, pair.named(kTokenizerKeys))
                                      : different("training data", pair, pair.named(kDataKeys));
    if (!pair.same_validation())
      return {std::nullopt, different("validation data", pair,
                                      pair.change_among(kSplitKeys) ? pair.named(kSplitKeys) : pair.named(kDataKeys)) +
                                ", and " + (same_tokenizer ? "different training data" : "different tokenizers")};
    LossMeasure needed = same_tokenizer ? LossMeasure::validation_loss : LossMeasure::bits_per_byte;
    if (basis.why.empty() || needed == LossMeasure::bits_per_byte) basis = {needed, why};
  }
  return basis;
}

}  // namespace sextant
