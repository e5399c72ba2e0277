#include "base/trace_rows.h"

#include <algorithm>
#include <map>

namespace sextant {

std::string path_of_all_layers(std::string_view path) {
  std::string out;
  while (true) {
    std::string_view name = path.substr(0, path.find('.'));
    bool number = !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    out += number ? "*" : name;
    if (name.size() == path.size()) return out;
    out += '.';
    path.remove_prefix(name.size() + 1);
  }
}

std::vector<TraceRow> rows_by_op(const Trace& trace, int rank) {
  std::map<std::pair<std::string, std::string>, TraceRow> found;
  for (const Event& event : trace) {
    if (event.rank != rank) continue;
    std::string path = path_of_all_layers(event.path);
    TraceRow& row = found[{event.name, path}];
    row.op = event.name;
    row.path = std::move(path);
    ++row.count;
    row.seconds += event.end_s - event.start_s;
  }
  std::vector<TraceRow> rows;
  for (auto& [key, row] : found) rows.push_back(std::move(row));
  return rows;
}

}  // namespace sextant
