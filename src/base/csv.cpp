#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace sextant {

namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  bool at_end() const { return at_ >= text_.size(); }

  CsvRow row() {
    CsvRow row{line_, {}};
    for (;;) {
      row.fields.push_back(field());
      if (at_end()) return row;
      char c = text_[at_++];
      if (c == ',') continue;
      if (c == '\r' && !at_end() && text_[at_] == '\n') ++at_;
      ++line_;
      return row;
    }
  }

 private:
  bool ends_field() const { return at_end() || text_[at_] == ',' || text_[at_] == '\n' || text_[at_] == '\r'; }

  std::string field() {
    if (at_end() || text_[at_] != '"') {
      size_t begin = at_;
      while (!ends_field()) ++at_;
      return std::string(text_.substr(begin, at_ - begin));
    }
    int begin = line_;
    std::string out;
    for (++at_;; ++at_) {
      if (at_end()) throw error(begin, "a quote that is not closed", "a closing \"");
      char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != '"') {
        out += c;
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        out += '"', ++at_;
      } else {
        break;
      }
    }
    ++at_;
    if (!ends_field()) throw error(line_, "text after a closing quote", "a comma or the end of the line");
    return out;
  }

  UserError error(int line, std::string got, std::string expected) const {
    return UserError(
        {.place = fmt::format("{}:{}", place_, line), .got = std::move(got), .expected = std::move(expected)});
  }

  std::string_view text_, place_;
  size_t at_ = 0;
  int line_ = 1;
};

// Fields are shown in tables and written as JSON, which cannot hold every byte.
void require_printable(std::string_view text, std::string_view place) {
  size_t at = first_unprintable(text);
  if (at == std::string_view::npos) return;
  auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw UserError({.place = fmt::format("{}:{}", place, line),
                   .got = fmt::format("a control character or a byte that is not UTF-8: 0x{:02x}",
                                      static_cast<unsigned char>(text[at])),
                   .expected = "text in UTF-8"});
}

}  // namespace

int CsvTable::column(std::string_view name) const {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

CsvTable parse_csv(std::string_view text, std::string_view place) {
  require_printable(text, place);
  CsvReader reader(text, place);
  if (reader.at_end())
    throw UserError(
        {.place = std::string(place), .got = "an empty file", .expected = "a line with the names of the columns"});
  CsvTable table{.names = reader.row().fields, .rows = {}};
  for (size_t i = 0; i < table.names.size(); ++i)
    if (table.column(table.names[i]) != static_cast<int>(i))
      throw UserError({.place = fmt::format("{}:1", place),
                       .got = fmt::format("column '{}' twice", table.names[i]),
                       .expected = "each name once"});
  while (!reader.at_end()) {
    CsvRow row = reader.row();
    if (row.fields.size() == 1 && row.fields[0].empty()) continue;  // an empty line
    if (row.fields.size() != table.names.size())
      throw UserError({.place = fmt::format("{}:{}", place, row.line),
                       .got = fmt::format("{} fields", row.fields.size()),
                       .expected = fmt::format("{}, as the first line has", table.names.size())});
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace sextant
