#include "exec/gemm_fault.h"

#include <fmt/format.h>

#include "base/corruption.h"

namespace sextant {

namespace {

struct VerdictWords {
  const char* name;
  const char* sentence;
};

VerdictWords words_of(std::optional<FaultVerdict> verdict) {
  if (!verdict) return {"", "it was not computed again"};
  return *verdict == FaultVerdict::persistent
             ? VerdictWords{"persistent", "computed again it is wrong too (persistent)"}
             : VerdictWords{"transient", "computed again it is right (transient)"};
}

}  // namespace

void end_by_fault(const GemmFault& fault, const Op& op, int rank, const std::string& place) {
  VerdictWords verdict = words_of(fault.verdict);
  std::string element = fault.column >= 0 ? fmt::format("row {}, column {} of the product", fault.row, fault.column)
                                          : fmt::format("the sum of row {} with random signs", fault.row);
  throw Corruption(
      {.check = "gemm", .rank = rank, .op = op.path, .layer = op.block, .verdict = verdict.name}, place,
      fmt::format("{} ({}) computed a wrong result: {} is {:.6g}, but must be {:.6g} to within {:.2g}; {}", op.path,
                  op.def->name, element, fault.got, fault.expected, fault.allowed, verdict.sentence));
}

}  // namespace sextant
