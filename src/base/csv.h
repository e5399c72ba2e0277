// A CSV text with a header line, read: quoted fields, quotes doubled inside them, either line end. UserError with place
// and line for a quote that never ends, a row of another length, a header with a name twice, control characters and
// what is not UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct CsvRow {
  int line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

struct CsvTable {
  std::vector<std::string> names;
  std::vector<CsvRow> rows;

  int column(std::string_view name) const;  // -1 when there is none
};

CsvTable parse_csv(std::string_view text, std::string_view place);

}  // namespace sextant
