#include "config/foreign_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "config/glossary_text.h"
#include "config/schema.h"

namespace sextant {

namespace {

// "--lr-warmup-iters" as "lr_warmup_iters".
std::string plain_name(std::string_view name) {
  std::string out(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  for (char& c : out) {
    if (c == '-') c = '_';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view last_part(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream text(row.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    size_t begin = cell.find_first_not_of(' ');
    cells.push_back(begin == cell.npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') - begin + 1));
  }
  return cells;
}

// The texts between backticks, each up to its first blank. Text in parentheses is skipped: it holds values, not names.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  int depth = 0;
  bool in_name = false;
  std::string name;
  for (char c : cell) {
    if (c == '`') {
      if (in_name && depth == 0) names.push_back(name.substr(0, name.find(' ')));
      in_name = !in_name;
      name.clear();
    } else if (in_name) {
      name += c;
    } else {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
  }
  return names;
}

std::string without_backticks(std::string text) {
  std::erase(text, '`');
  return text;
}

struct Row {
  std::vector<std::string> keys, theirs;
  std::string ours;
};

// The rows of the tables that have names of ours in one column and names of others beside it.
std::vector<Row> glossary_rows() {
  std::vector<Row> rows;
  enum class Table { none, ours_first, ours_last } table = Table::none;
  std::istringstream page(kGlossaryText);
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with('|')) {
      table = Table::none;
      continue;
    }
    std::vector<std::string> cells = cells_of(line);
    if (cells.front() == "ours" || cells.front() == "theirs") {
      table = cells.front() == "ours" ? Table::ours_first : Table::ours_last;
    } else if (table != Table::none && cells.size() > 1) {
      std::string own = table == Table::ours_first ? cells.front() : cells.back();
      Row row{.keys = {}, .theirs = {}, .ours = without_backticks(own)};
      for (const std::string& name : names_in(own))
        if (find_key(name)) row.keys.push_back(name);
      for (const std::string& cell : cells)
        if (&cell != (table == Table::ours_first ? &cells.front() : &cells.back()))
          for (const std::string& name : names_in(cell)) row.theirs.push_back(plain_name(name));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

ForeignName find_foreign_name(std::string_view name, ForeignMatch match) {
  const std::string plain = plain_name(name);
  const bool whole = match == ForeignMatch::whole;
  const std::string wanted(whole ? std::string_view(plain) : last_part(plain));
  for (const Row& row : glossary_rows())
    for (const std::string& each : row.theirs)
      if ((whole ? std::string_view(each) : last_part(each)) == wanted) return {row.keys, row.ours};
  return {};
}

std::string answer_for_foreign_name(std::string_view name, ForeignMatch match) {
  ForeignName found = find_foreign_name(name, match);
  return found.ours.empty() ? "" : fmt::format("here it is {}", found.ours);
}

}  // namespace sextant
