#include "train/op_times.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/trace_rows.h"

namespace sextant {

void append_op_times(const std::filesystem::path& out, const OpTimesOf& of, const Trace& trace) {
  std::filesystem::path folder = out / kOpTimesFolder;
  std::filesystem::create_directories(folder);
  nlohmann::ordered_json line{{"step", of.step}, {"rank", of.rank}, {"stage", of.stage}};
  nlohmann::ordered_json& ops = line["ops"] = nlohmann::ordered_json::array();
  for (const TraceRow& row : rows_by_op(trace, of.rank))
    ops.push_back({row.op, row.path, row.count, std::round(row.seconds * 1e8) / 1e8});
  std::filesystem::path path = folder / fmt::format("rank-{}.jsonl", of.rank);
  std::ofstream file(path, std::ios::app);
  file << line.dump() << std::endl;
  if (!file) throw RunError(path.string(), "cannot write", "is the disk full?");
}

}  // namespace sextant
