// Walks over one JSON text without building anything, keeping only the strings it is asked for. It stands beside
// nlohmann::json, which reads everything else, because tokenizing begins with it for every byte of the corpus; the
// tests hold it to the same verdicts. Nesting costs no profile. What is not JSON is a JsonError with the byte.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sextant {

// what() is what was expected at `at`, as in Complaint::expected.
struct JsonError : std::runtime_error {
  JsonError(size_t at, const std::string& expected) : std::runtime_error(expected), at(at) {}
  size_t at;
};

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text);

  std::string_view next_kind();  // "a string", "a number", "an object", …: what value begins here
  bool take_if(char symbol);
  void expect(char symbol, std::string_view expected);
  void read_string(std::string& out);    // out: without quotes and escapes
  void read_over(std::string& scratch);  // a value of any kind
  void expect_end();

 private:
  char peek();  // the next character that is not white space; '\0' at the end (and for a zero byte, which fits nowhere)
  [[noreturn]] void fail(std::string_view expected) const;
  void read_over_scalar(std::string& scratch);
  void read_key(std::string& out);
  void read_number();
  void read_digits();
  void read_escape(std::string& out);
  unsigned read_hex4();
  void read_utf8(std::string& out);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace sextant
