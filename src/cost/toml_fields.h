// Fields of a table in a TOML file: each has a name, what it may hold, and a place it is read into and written from.
// Enters: the entries of parse_toml. Leaves: the places filled, and a complaint with file, line and column for each
// entry that does not fit. Inside cost/ only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/toml_document.h"
#include "cost/machine.h"

namespace sextant {

// The number in the file is multiplied and then divided, so that 2.5 µs becomes the double nearest to 2.5e-6.
struct NumberPlace {
  double* to;
  Bounds allowed;  // in the file's unit
  double times = 1, over = 1;
};
struct CountPlace {
  int64_t* to;
  int64_t least, most;
};
struct CountsPlace {
  std::vector<int64_t>* to;
  int64_t least, most;  // of each; at least one of them
};
struct FlagPlace {
  bool* to;
};
struct TextPlace {
  std::string* to;
};
struct TextsPlace {
  std::vector<std::string>* to;
};
// One of a few words; the place holds which.
struct WordPlace {
  size_t* to;
  std::vector<std::string_view> words;
};

struct Field {
  std::string key;
  std::variant<NumberPlace, CountPlace, CountsPlace, FlagPlace, TextPlace, TextsPlace, WordPlace> is;
};

// Reads one file; all that is wrong with it is thrown together.
class FieldReader {
 public:
  explicit FieldReader(std::string_view file) : file_(file) {}

  // The entry is `key` of `table`, whose fields these are.
  void read(const TomlEntry& entry, std::string_view key, std::span<const Field> fields, std::string_view table);

  void complain(const TomlEntry& entry, Complaint complaint);  // its place is filled in
  void complain(Complaint complaint) { complaints_.push_back(std::move(complaint)); }
  void throw_if_any() const;

 private:
  std::string file_;
  std::vector<Complaint> complaints_;
};

// "key = value\n" for each.
std::string fields_text(std::span<const Field> fields);

// "device" and "units" of "device.units"; the table is empty at the top of the file.
std::pair<std::string_view, std::string_view> table_and_key(std::string_view dotted);

// The number whole or with a fraction, when it is one.
std::optional<double> number_of(const TomlValue& value);

// The shortest decimal that, multiplied and divided like that, is `value` again.
std::string number_text(double value, double times = 1, double over = 1);

}  // namespace sextant
