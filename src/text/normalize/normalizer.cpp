#include "text/normalize/normalizer.h"

#include <algorithm>

#include "text/split/pcre_pattern.h"
#include "text/unicode/unicode_classes.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}
  void apply(NormalText& text) const override {
    for (const NormalizerPtr& step : steps_) step->apply(text);
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(NormalText& text) const override {
    if (!text.text.empty()) text.text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

bool is_white_space(const char* at) {
  return UnicodeKinds::get().of(decode_valid_utf8(at).code) == CharKind::space;
}

class Strip : public Normalizer {
 public:
  explicit Strip(StripSide side) : side_(side) {}
  void apply(NormalText& text) const override {
    std::string_view rest = text.text;
    if (side_ != StripSide::left)
      while (!rest.empty() && is_white_space(previous_utf8(rest.data() + rest.size())))
        rest = {rest.data(), static_cast<size_t>(previous_utf8(rest.data() + rest.size()) - rest.data())};
    size_t stripped = 0;
    if (side_ != StripSide::right)
      for (; !rest.empty() && is_white_space(rest.data()); ++stripped)
        rest.remove_prefix(decode_valid_utf8(rest.data()).size);
    text.dropped_from_front(stripped);
    if (rest.size() != text.text.size()) text.text = std::string(rest);
  }

 private:
  StripSide side_;
};

size_t characters_in(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(decode_valid_utf8(text.data()).size);
  return count;
}

// HF aligns a replacement at the front of a text with the last character that it replaces.
void replace_front(NormalText& text, std::string_view replaced, std::string_view content) {
  const size_t before = characters_in(replaced), after = characters_in(content);
  if (after == 0) return text.dropped_from_front(before);
  if (before > 0) text.dropped_from_front(before - 1);
  text.first_became += after - std::min<size_t>(before, 1);
}

class ReplaceLiteral : public Normalizer {
 public:
  ReplaceLiteral(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(NormalText& text) const override {
    size_t found = next(text.text, 0);
    if (found == std::string::npos) return;
    if (found == 0) replace_front(text, pattern_, content_);
    std::string out;
    out.reserve(text.text.size() + text.text.size() / 2);
    size_t done = 0;
    for (; found != std::string::npos; found = next(text.text, done)) {
      out.append(text.text, done, found - done);
      out += content_;
      done = found + pattern_.size();
    }
    out.append(text.text, done);
    text.text = std::move(out);
  }

 private:
  size_t next(const std::string& text, size_t from) const {
    return pattern_.size() == 1 ? text.find(pattern_[0], from) : text.find(pattern_, from);
  }

  std::string pattern_, content_;
};

class ReplaceRegex : public Normalizer {
 public:
  ReplaceRegex(std::unique_ptr<PcrePattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(NormalText& text) const override {
    PcreSearch search(*pattern_, text.text);
    std::optional<MatchSpan> match = search.first();
    if (!match) return;
    if (match->begin == 0) replace_front(text, std::string_view(text.text).substr(0, match->end), content_);
    std::string out;
    size_t done = 0;
    for (; match; match = search.next(done)) {
      out.append(text.text, done, match->begin - done);
      out += content_;
      done = match->end;
    }
    out.append(text.text, done);
    text.text = std::move(out);
  }

 private:
  std::unique_ptr<PcrePattern> pattern_;
  std::string content_;
};

}  // namespace

NormalizerPtr sequence_normalizer(std::vector<NormalizerPtr> steps) {
  if (steps.size() == 1) return steps[0];
  return std::make_shared<Sequence>(std::move(steps));
}

NormalizerPtr prepend_normalizer(std::string prefix) {
  return std::make_shared<Prepend>(std::move(prefix));
}

NormalizerPtr strip_normalizer(StripSide side) {
  return std::make_shared<Strip>(side);
}

NormalizerPtr literal_normalizer(std::string pattern, std::string content) {
  return std::make_shared<ReplaceLiteral>(std::move(pattern), std::move(content));
}

NormalizerPtr regex_normalizer(std::unique_ptr<PcrePattern> pattern, std::string content) {
  return std::make_shared<ReplaceRegex>(std::move(pattern), std::move(content));
}

std::string normalized(std::string_view text, const Normalizer* normalizer) {
  NormalText out{std::string(text)};
  if (normalizer) normalizer->apply(out);
  return std::move(out.text);
}

}  // namespace sextant
