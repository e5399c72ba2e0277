#include "bench/traced_ops.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cost/measured_ops.h"

namespace sextant {

namespace {

struct OpSize {
  std::string shape, dtype;
  std::vector<double> size;
};

std::string shape_text_of(const Program& program, const Op& op) {
  std::string text;
  for (ValueId id : op.inputs) {
    std::string dims;
    for (int64_t dim : program[id].local.dims()) dims += (dims.empty() ? "" : "x") + std::to_string(dim);
    text += (text.empty() ? "" : ",") + (dims.empty() ? "1" : dims);
  }
  return text;
}

// An op that computes in 16 bits has floats of 16 bits among its operands.
std::string dtype_of(const Program& program, const Op& op) {
  for (const std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
    for (ValueId id : *ids)
      if (DType dtype = program[id].dtype; dtype == DType::bf16 || dtype == DType::f16)
        return dtype == DType::f16 ? "fp16" : "bf16";
  return "fp32";
}

using OpName = std::pair<std::string, std::string>;  // of the op and its path, as events have them

std::map<OpName, OpSize> sizes_of(const Program& program) {
  std::map<OpName, OpSize> sizes;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (!op.def->message)
        sizes.emplace(OpName(op.def->name, op.path),
                      OpSize{shape_text_of(program, op), dtype_of(program, op), size_of_op(local_cost(program, op))});
  return sizes;
}

}  // namespace

void bench_traced_ops(const TracedOpsRequest& request, const LoweredRun& lowered, BenchReport& report,
                      const Watch& watch) {
  StepRequest steps = request.steps;
  steps.tracing = Tracing::on;
  StepTimes times = time_steps(steps, lowered, watch);
  std::map<std::string, size_t> places;  // of a key, among the results
  for (size_t rank = 0; rank < times.traces.size(); ++rank) {
    auto stage = static_cast<size_t>(stage_rank_of(lowered.shape.mesh, static_cast<int>(rank)));
    std::map<OpName, OpSize> sizes = sizes_of(lowered.programs.train[stage]);
    for (const Trace& trace : times.traces[rank])
      for (const Event& event : trace) {
        auto known = sizes.find({event.name, event.path});
        if (known == sizes.end() || event.name.find(request.only) == std::string::npos) continue;
        BenchResult result{.kind = "ops",
                           .name = event.name,
                           .shape = known->second.shape,
                           .dtype = known->second.dtype,
                           .size = known->second.size,
                           .samples = {},
                           .flops = event.flops,
                           .bytes = static_cast<double>(event.bytes)};
        auto [place, first] = places.emplace(result.key(), report.results.size());
        if (first) report.results.push_back(std::move(result));
        report.results[place->second].samples.push_back(event.end_s - event.start_s);
      }
  }
}

}  // namespace sextant
