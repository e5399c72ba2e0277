#include "watch/csv_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sextant {

namespace {

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::vector<std::string> fields_of(const RunSet& runs) {
  std::vector<std::string> fields;
  for (const auto& run : runs.runs())
    for (const MetricColumn& column : run->columns().columns())
      if (std::ranges::count(fields, column.name()) == 0) fields.push_back(column.name());
  return fields;
}

}  // namespace

std::string csv_of_runs(const RunSet& runs, const std::vector<std::string>& wanted) {
  std::vector<std::string> fields = wanted.empty() ? fields_of(runs) : wanted;
  std::string out = "run";
  for (const NamedAxis& one : kXAxes) out += "," + std::string(one.name);
  for (const std::string& field : fields) out += "," + csv_text(field);
  out += '\n';
  for (const auto& run : runs.runs()) {
    const RunColumns& columns = run->columns();
    std::vector<const MetricColumn*> found;
    for (const std::string& field : fields) found.push_back(columns.column(field));
    std::string name = csv_text(run->name());
    for (size_t row = 0; row < columns.rows(); ++row) {
      fmt::format_to(std::back_inserter(out), "{},{},{},{:.3f},", name, columns.x(XAxis::step, row),
                     columns.x(XAxis::tokens, row), columns.x(XAxis::seconds, row));
      if (columns.has_axis(XAxis::flops)) fmt::format_to(std::back_inserter(out), "{}", columns.x(XAxis::flops, row));
      for (const MetricColumn* column : found) {
        out += ',';
        if (!column) continue;
        size_t i = column->first_at_or_after(row);
        if (i < column->size() && column->row(i) == row && !std::isnan(column->value(i)))
          fmt::format_to(std::back_inserter(out), "{}", column->value(i));
      }
      out += '\n';
    }
  }
  return out;
}

}  // namespace sextant
