#include "laws/runs_csv.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "laws/quantity.h"

namespace sextant {

namespace {

// The fit takes time with each; more are the lines of a log, not runs.
constexpr size_t kMostRuns = 10'000;

// Above any model, corpus or budget; products of two stay far within a double.
constexpr double kMostCount = 1e20, kMostFlops = 1e40, kMostLoss = 1e3;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

struct CsvPosition {
  std::string_view file;
  int line = 1;

  [[noreturn]] void fail(std::string got, std::string expected, std::string hint = "") const {
    throw UserError(Complaint{fmt::format("{}:{}", file, line), std::move(got), std::move(expected), std::move(hint)});
  }
};

// One row's cells, trimmed; a quoted one may hold commas, and "" stands for a quotation mark.
std::vector<std::string> split_row(std::string_view row, const CsvPosition& place) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t at = 0; at < row.size(); ++at) {
    char c = row[at];
    if (quoted && c == '"' && at + 1 < row.size() && row[at + 1] == '"') {
      cells.back() += row[++at];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  if (quoted) place.fail("a quoted cell does not end", "a second \" on the same line");
  for (std::string& cell : cells) cell = std::string(trim(cell));
  return cells;
}

struct Columns {
  std::optional<size_t> params, tokens, loss, flops;
};

Columns read_header(const std::vector<std::string>& cells, const CsvPosition& place) {
  Columns columns;
  auto take = [&](std::optional<size_t>& column, size_t at) {
    if (column) place.fail(fmt::format("two columns are named {}", cells[at]), "one");
    column = at;
  };
  for (size_t at = 0; at < cells.size(); ++at) {
    const std::string& name = cells[at];
    if (name == "params" || name == "N") take(columns.params, at);
    if (name == "tokens" || name == "D") take(columns.tokens, at);
    if (name == "loss" || name == "L") take(columns.loss, at);
    if (name == "flops" || name == "C") take(columns.flops, at);
  }
  int sizes = columns.params.has_value() + columns.tokens.has_value() + columns.flops.has_value();
  if (!columns.loss || sizes < 2)
    place.fail(
        columns.loss ? "two of the columns params, tokens and flops are needed" : "there is no column named loss",
        "a first row such as params,tokens,loss", "N, D, L and C are understood for params, tokens, loss and flops.");
  return columns;
}

struct Cell {
  const char* column;
  size_t at;
  double most;
};

double read_cell(const std::vector<std::string>& cells, const Cell& cell, const CsvPosition& place) {
  std::string where = fmt::format("{}:{} column {}", place.file, place.line, cell.column);
  if (cell.at >= cells.size() || cells[cell.at].empty())
    throw UserError(Complaint{where, "there is no value", "a positive number", "Leave out runs that did not finish."});
  double value = parse_quantity(cells[cell.at], where);
  if (value > cell.most)
    throw UserError(
        Complaint{where, fmt::format("{:.3g} is too large", value), fmt::format("at most {:.0e}", cell.most), ""});
  return value;
}

LossRun read_run(const std::vector<std::string>& cells, const Columns& columns, const CsvPosition& place) {
  std::optional<double> params, tokens;
  if (columns.params) params = read_cell(cells, {"params", *columns.params, kMostCount}, place);
  if (columns.tokens) tokens = read_cell(cells, {"tokens", *columns.tokens, kMostCount}, place);
  double loss = read_cell(cells, {"loss", *columns.loss, kMostLoss}, place);
  if (!params || !tokens) {
    double flops = read_cell(cells, {"flops", *columns.flops, kMostFlops}, place);
    (params ? tokens : params) = flops / 6 / (params ? *params : *tokens);
  }
  if (*params < 1 || *tokens < 1)
    place.fail(fmt::format("a run of {:.3g} parameters and {:.3g} tokens", *params, *tokens), "at least one of each");
  return {*params, *tokens, loss};
}

}  // namespace

std::vector<LossRun> runs_from_csv(std::string_view text, std::string_view file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // spreadsheets write one
  std::vector<LossRun> runs;
  std::optional<Columns> columns;
  for (CsvPosition place{file}; !text.empty(); ++place.line) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.empty() || row.front() == '#') continue;
    std::vector<std::string> cells = split_row(row, place);
    if (columns) {
      if (runs.size() == kMostRuns)
        place.fail(fmt::format("more than {} rows", kMostRuns), "one row for each run, with the loss at its end");
      runs.push_back(read_run(cells, *columns, place));
    } else {
      columns = read_header(cells, place);
    }
  }
  if (!columns) CsvPosition{file}.fail("the file is empty", "a row of column names, such as params,tokens,loss");
  return runs;
}

}  // namespace sextant
