#include "watch/metrics_line.h"

#include <charconv>
#include <limits>

namespace sextant {

namespace {

constexpr int kDeepest = 64;  // levels of lists and objects in one line

// Walks over JSON. Every function leaves the position behind what it read, and says whether that was there.
class LineScanner {
 public:
  explicit LineScanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() const { return at_ == end_; }
  char peek() const { return at_ == end_ ? '\0' : *at_; }
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size() || std::string_view(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // `text` is what stands between the quotes, escapes as they are written.
  bool take_string(std::string_view& text, bool& has_escapes) {
    if (!take('"')) return false;
    const char* begin = at_;
    has_escapes = false;
    for (; at_ != end_ && *at_ != '"'; ++at_) {
      if (static_cast<unsigned char>(*at_) < 0x20) return false;
      if (*at_ != '\\') continue;
      has_escapes = true;
      if (++at_ == end_) return false;
    }
    text = {begin, static_cast<size_t>(at_ - begin)};
    return take('"');
  }

  bool take_number(double& value) {
    const char* begin = at_;
    if (peek() == '-') ++at_;
    const char* whole = at_;
    while (is_digit()) ++at_;
    if (at_ == whole || (*whole == '0' && at_ - whole > 1)) return false;
    if (peek() == '.' && (++at_, !take_digits())) return false;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!take_digits()) return false;
    }
    auto [last, error] = std::from_chars(begin, at_, value);
    if (error == std::errc::result_out_of_range) value = std::numeric_limits<double>::infinity();
    return last == at_;
  }

  // Any value, whatever it holds.
  bool skip_value(int depth) {
    skip_space();
    std::string_view text;
    bool escapes = false;
    double number = 0;
    switch (peek()) {
      case '"':
        return take_string(text, escapes);
      case '{':
      case '[':
        return depth < kDeepest && skip_container(depth);
      case 't':
        return take_word("true");
      case 'f':
        return take_word("false");
      case 'n':
        return take_word("null");
      default:
        return take_number(number);
    }
  }

 private:
  bool is_digit() const { return at_ != end_ && *at_ >= '0' && *at_ <= '9'; }
  bool take_digits() {
    const char* begin = at_;
    while (is_digit()) ++at_;
    return at_ != begin;
  }
  bool skip_container(int depth) {
    bool object = *at_ == '{';
    char close = object ? '}' : ']';
    ++at_;
    if (take(close)) return true;
    do {
      std::string_view name;
      bool escapes = false;
      if (object && (!take_string(name, escapes) || !take(':'))) return false;
      if (!skip_value(depth + 1)) return false;
    } while (take(','));
    return take(close);
  }

  const char* at_;
  const char* end_;
};

enum class ListRead { numbers, other, broken };

// The numbers of a list are appended to `values`, NaN for null, which stands for one that is not finite; a list of
// anything else is walked over.
ListRead read_list(LineScanner& scanner, std::vector<double>& values) {
  scanner.take('[');
  if (scanner.take(']')) return ListRead::numbers;
  ListRead read = ListRead::numbers;
  do {
    scanner.skip_space();
    char first = scanner.peek();
    double value = 0;
    if (first == '-' || (first >= '0' && first <= '9')) {
      if (!scanner.take_number(value)) return ListRead::broken;
      values.push_back(value);
    } else if (first == 'n') {
      if (!scanner.take_word("null")) return ListRead::broken;
      values.push_back(std::numeric_limits<double>::quiet_NaN());
    } else {
      if (!scanner.skip_value(1)) return ListRead::broken;
      read = ListRead::other;
    }
  } while (scanner.take(','));
  return scanner.take(']') ? read : ListRead::broken;
}

}  // namespace

bool MetricsLine::parse(std::string_view line) {
  numbers_.clear();
  lists_.clear();
  list_values_.clear();
  LineScanner scanner(line);
  if (!scanner.take('{')) return false;
  bool empty = scanner.take('}');
  while (!empty) {
    std::string_view name;
    bool escapes = false;
    if (!scanner.take_string(name, escapes) || !scanner.take(':')) return false;
    scanner.skip_space();
    char first = scanner.peek();
    double value = 0;
    if (first == '-' || (first >= '0' && first <= '9')) {
      if (!scanner.take_number(value)) return false;
      if (!escapes) numbers_.push_back({name, value});
    } else if (first == '[') {
      size_t begin = list_values_.size();
      ListRead read = read_list(scanner, list_values_);
      if (read == ListRead::broken) return false;
      if (read == ListRead::numbers && !escapes)
        lists_.push_back({name, begin, list_values_.size() - begin});
      else
        list_values_.resize(begin);
    } else {
      if (!scanner.skip_value(0)) return false;
      if ((first == 't' || first == 'f') && !escapes) numbers_.push_back({name, first == 't' ? 1.0 : 0.0});
    }
    if (!scanner.take(',')) {
      if (!scanner.take('}')) return false;
      break;
    }
  }
  scanner.skip_space();
  return scanner.at_end();
}

const double* MetricsLine::number(std::string_view name) const {
  const double* found = nullptr;
  for (const Number& number : numbers_)
    if (number.name == name) found = &number.value;
  return found;
}

}  // namespace sextant
