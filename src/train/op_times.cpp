#include "train/op_times.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/run_file.h"
#include "base/trace_rows.h"

namespace sextant {

void append_op_times(const std::filesystem::path& out, const OpTimesOf& of, const Trace& trace) {
  std::filesystem::path folder = out / kOpTimesFolder;
  nlohmann::ordered_json line{{"step", of.step}, {"rank", of.rank}, {"stage", of.stage}};
  nlohmann::ordered_json& ops = line["ops"] = nlohmann::ordered_json::array();
  for (const TraceRow& row : rows_by_op(trace, of.rank))
    ops.push_back({row.op, row.path, row.count, std::round(row.seconds * 1e8) / 1e8});
  std::filesystem::path path = folder / fmt::format("rank-{}.jsonl", of.rank);
  if (!make_run_folder(folder) || !append_to_run_file(path, line.dump() + "\n"))
    throw RunError(path.string(), fmt::format("cannot write: {}", std::strerror(errno)));
}

}  // namespace sextant
