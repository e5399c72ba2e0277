#include "data/jsonl.h"

#include "base/error.h"
#include "data/json_scanner.h"

namespace sextant {

namespace {

[[noreturn]] void refuse(LinePlace place, std::string got, std::string expected, std::string hint = "") {
  throw UserError({.place = fmt::format("{}:{}", place.file, place.line),
                   .got = std::move(got),
                   .expected = std::move(expected),
                   .hint = std::move(hint)});
}

void note_key(std::string_view key, std::string& keys_seen) {
  if (keys_seen.size() > 80) return;  // enough to recognise the file by
  if (!keys_seen.empty()) keys_seen += ", ";
  keys_seen += key.substr(0, 40);
}

}  // namespace

std::string_view JsonLineText::parse(std::string_view line, LinePlace place) try {
  JsonScanner scan(line);
  keys_seen_.clear();
  if (auto kind = scan.next_kind(); kind != "an object") {
    scan.read_over(other_);
    scan.expect_end();
    refuse(place, fmt::format("the line is {}", kind), "a JSON object on every line");
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
  throw UserError({.place = fmt::format("{}:{}:{}", place.file, place.line, error.at + 1),
                   .got = error.at < line.size() ? "the line is not valid JSON" : "the line is cut short",
                   .expected = error.what()});
}

}  // namespace sextant
