#include "data/jsonl.h"

#include "base/error.h"
#include "data/json_scanner.h"
#include "data/text_encoding.h"

namespace sextant {

namespace {

[[noreturn]] void refuse(const JsonPlace& place, std::string got, std::string expected, std::string hint = "") {
  throw UserError(
      {.place = place.text(), .got = std::move(got), .expected = std::move(expected), .hint = std::move(hint)});
}

void note_key(std::string_view key, std::string& keys_seen) {
  if (keys_seen.size() > 80) return;  // enough to recognise the file by
  if (!keys_seen.empty()) keys_seen += ", ";
  keys_seen += key.substr(0, 40);
}

}  // namespace

std::string JsonPlace::text() const {
  return noun == "line" ? fmt::format("{}:{}", file, number) : fmt::format("{}: {} {}", file, noun, number);
}

std::string JsonPlace::text_at(size_t byte) const {
  return fmt::format("{}{}{}", text(), noun == "line" ? ":" : ", byte ", byte);
}

std::string_view JsonText::parse(std::string_view object, JsonPlace place) try {
  JsonScanner scan(object);
  keys_seen_.clear();
  if (auto kind = scan.next_kind(); kind != "an object") {
    scan.read_over(other_);
    scan.expect_end();
    refuse(place, fmt::format("the {} is {}", place.noun, kind),
           place.noun == "line" ? "a JSON object on every line" : fmt::format("{}s that are objects", place.noun));
  }
  int found = 0;
  std::string_view kind = "a string";  // of the value under the key
  scan.expect('{', "'{'");
  if (!scan.take_if('}')) {
    do {
      scan.read_string(other_);
      scan.expect(':', "':'");
      note_key(other_, keys_seen_);
      if (other_ != key_) {
        scan.read_over(other_);
      } else if (++found; (kind = scan.next_kind()) == "a string") {
        scan.read_string(text_);
      } else {
        scan.read_over(other_);
      }
    } while (scan.take_if(','));
    scan.expect('}', "',' or '}'");
  }
  scan.expect_end();

  if (found == 0)
    refuse(place, fmt::format("the object has no key \"{}\"", key_), "",
           keys_seen_.empty() ? "it is empty." : fmt::format("its keys are: {}", keys_seen_));
  if (found > 1) refuse(place, fmt::format("key \"{}\" is given twice", key_), "it once");
  if (kind != "a string") refuse(place, fmt::format("key \"{}\" holds {}", key_, kind), "a string");
  return text_;
} catch (const JsonError& error) {
  if (auto broken = find_broken_utf8(object); broken && broken->at <= error.at)
    throw UserError({.place = place.text_at(error.at + 1),
                     .got = not_utf8(*broken, fmt::format("the {}", place.noun)),
                     .expected = "UTF-8",
                     .hint = conversion_hint(std::string(place.file), broken->encoding)});
  throw UserError(
      {.place = place.text_at(error.at + 1),
       .got = fmt::format("the {} is {}", place.noun, error.at < object.size() ? "not valid JSON" : "cut short"),
       .expected = error.what()});
}

}  // namespace sextant
