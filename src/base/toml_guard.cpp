#include "base/toml_guard.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/error.h"

namespace sextant {

namespace {

// Walks over the text outside quotes and comments.
class Guard {
 public:
  Guard(std::string_view text, std::string_view place) : text_(text), place_(place) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = line_begin_ = 3;  // a byte order mark
  }

  void walk() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        if (!skip_string(c)) return;  // not closed: the parser will say so
      } else {
        look_at(c);
        ++at_;
      }
    }
  }

 private:
  void look_at(char c) {
    if (c == '\n') return begin_line();
    if (static_cast<unsigned char>(c) >= 0x80) refuse("a letter outside quotes that is not ASCII");
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7f) refuse("a control character");
    if (c == '[' && depth_ == 0 && only_blanks_before()) return look_at_header();
    if (!in_header_ && (c == '[' || c == '{')) ++depth_;
    if (!in_header_ && (c == ']' || c == '}')) depth_ = std::max(0, depth_ - 1);
    if (c == '.' && ++dots_ == kMaxTomlKeyParts) refuse(fmt::format("a key of more than {} parts", kMaxTomlKeyParts));
    if (std::string_view("=,[]{}").find(c) != std::string_view::npos) dots_ = 0;
  }

  void look_at_header() {
    in_header_ = true;
    size_t name = at_ + 1;
    if (name < text_.size() && text_[name] == '[') ++name;
    name = text_.find_first_not_of(" \t", name);
    if (name == text_.npos) return;
    char c = text_[name];
    bool begins_name =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-\"'").find(c) != std::string_view::npos;
    bool left_to_parser = c == ']' || c == '[';
    if (!begins_name && !left_to_parser) refuse("a table header that does not begin with a name");
    at_ = name - 1;
  }

  // From the opening quote to behind the closing one; false when there is none.
  bool skip_string(char quote) {
    bool opens = at_ == line_begin_ || std::string_view(" \t=,[{.").find(text_[at_ - 1]) != std::string_view::npos;
    if (!opens) refuse("a quote inside a word");  // the parser would not take it for the beginning of a string
    const std::string three(3, quote);
    bool long_form = text_.substr(at_).starts_with(three);
    at_ += long_form ? 3 : 1;
    while (at_ < text_.size()) {
      if (long_form ? text_.substr(at_).starts_with(three) : text_[at_] == quote) {
        at_ += long_form ? 3 : 1;
        // Up to two quotes may stand right before the closing three.
        for (int extra = 0; long_form && extra < 2 && at_ < text_.size() && text_[at_] == quote; ++extra) ++at_;
        return true;
      }
      if (text_[at_] == '\n' && !long_form) return false;
      if (text_[at_] == '\n') ++line_, line_begin_ = at_ + 1;
      at_ += text_[at_] == '\\' && quote == '"' ? 2 : 1;
    }
    return false;
  }

  void begin_line() {
    ++line_;
    line_begin_ = at_ + 1;
    dots_ = 0;
    in_header_ = false;
  }

  bool only_blanks_before() const {
    return text_.substr(line_begin_, at_ - line_begin_).find_first_not_of(" \t") == std::string_view::npos;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    std::string_view before = text_.substr(line_begin_, at_ - line_begin_);
    auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
    auto column = std::count_if(before.begin(), before.end(), begins_character) + 1;
    throw UserError(
        {.place = fmt::format("{}:{}:{}", place_, line_, column), .got = fmt::format("not valid TOML: {}", what)});
  }

  std::string_view text_;
  std::string_view place_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  int line_ = 1;
  int dots_ = 0;   // in the key or number at hand
  int depth_ = 0;  // of lists and inline tables
  bool in_header_ = false;
};

}  // namespace

void guard_toml(std::string_view text, std::string_view place) {
  Guard(text, place).walk();
}

}  // namespace sextant
