// Is a text well-formed XML (or HTML written that way)? Says what is wrong with it, or nothing.
#pragma once

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

class XmlCheck {
 public:
  explicit XmlCheck(std::string_view text) : rest_(text) {}

  std::string complaint() {
    while (wrong_.empty() && !rest_.empty()) {
      if (rest_.starts_with("<!DOCTYPE html>"))
        skip(15);
      else if (rest_.starts_with("</"))
        close();
      else if (rest_.front() == '<')
        open();
      else
        words(rest_.substr(0, rest_.find('<')));
    }
    if (!wrong_.empty()) return wrong_;
    if (!open_.empty()) return "not closed: " + open_.back();
    return roots_ == 1 ? "" : "there are " + std::to_string(roots_) + " roots";
  }

 private:
  void skip(size_t n) { rest_.remove_prefix(std::min(n, rest_.size())); }
  void complain(const std::string& what) {
    if (wrong_.empty()) wrong_ = what + " before: " + std::string(rest_.substr(0, 60));
  }
  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':' || c == '_';
  }
  std::string name() {
    size_t n = 0;
    while (n < rest_.size() && is_name(rest_[n])) ++n;
    std::string out(rest_.substr(0, n));
    if (out.empty()) complain("a name is missing");
    skip(n);
    return out;
  }
  void spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) skip(1);
  }

  void words(std::string_view text) {
    references(text);
    if (open_.empty() && text.find_first_not_of(" \n") != std::string_view::npos) complain("text outside");
    skip(text.size());
  }

  void references(std::string_view text) {
    for (size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
      bool known = false;
      for (std::string_view good : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
        known = known || text.substr(at).starts_with(good);
      if (!known) complain("an ampersand");
    }
    for (char c : text)
      if (static_cast<unsigned char>(c) < ' ' && c != '\n') complain("a control character");
  }

  void close() {
    skip(2);
    std::string element = name();
    if (open_.empty() || open_.back() != element) return complain("</" + element + "> closes nothing");
    open_.pop_back();
    if (!rest_.starts_with('>')) complain("an end tag without end");
    skip(1);
  }

  void open() {
    skip(1);
    std::string element = name();
    roots_ += open_.empty();
    std::set<std::string> seen;
    for (spaces(); !rest_.empty() && is_name(rest_.front()); spaces()) {
      if (!seen.insert(name()).second) return complain("an attribute twice");
      if (!rest_.starts_with("=\"")) return complain("an attribute without value");
      skip(2);
      std::string_view value = rest_.substr(0, rest_.find('"'));
      if (value.find('<') != std::string_view::npos) return complain("< in an attribute");
      references(value);
      skip(value.size() + 1);
    }
    if (rest_.starts_with("/>")) return skip(2);
    if (!rest_.starts_with('>')) return complain("a tag without end");
    skip(1);
    open_.push_back(element);
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  size_t roots_ = 0;
  std::string wrong_;
};

inline std::string why_not_well_formed(std::string_view text) {
  return XmlCheck(text).complaint();
}

inline size_t count_of(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Text that no path, name or source may bring into a picture or page.
inline const std::string kHostile = "\"><script>alert('1')</script>&<!--\x01\xff]]>";

}  // namespace sextant
