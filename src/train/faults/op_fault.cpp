#include "train/faults/op_fault.h"

#include <fmt/format.h>

#include <limits>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"

namespace sextant {

namespace {

bool can_be_nan(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}

void spoil_first_number(const Tensor& tensor) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (tensor.dtype == DType::f32) *static_cast<float*>(tensor.data) = kNaN;
  if (tensor.dtype == DType::f64) *static_cast<double*>(tensor.data) = kNaN;
  if (tensor.dtype == DType::bf16) *static_cast<uint16_t*>(tensor.data) = bf16_bits(kNaN);
  if (tensor.dtype == DType::f16) *static_cast<uint16_t*>(tensor.data) = f16_bits(kNaN);
}

[[noreturn]] void refuse_op(const Fault& fault, std::string got, std::string expected) {
  throw UserError({.place = fault.text, .got = std::move(got), .expected = std::move(expected)});
}

}  // namespace

void require_op_of(const Fault& fault, const Bound& bound) {
  if (!bound.is_observed_in_place())
    refuse_op(fault, "the kernels of this device make no faults on request", "device = \"cpu\"");
  const Program& program = bound.program();
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      if (op.path != fault.op || op.outputs.empty()) continue;
      if (can_be_nan(program[op.outputs[0]].dtype)) return;
      refuse_op(fault, fmt::format("{} makes {}", fault.op, name_of(program[op.outputs[0]].dtype)),
                "an op that makes f32, f64, bf16 or f16");
    }
  refuse_op(
      fault, fmt::format("rank {} runs no op that is called {}", fault.rank, fault.op),
      "the name of an op, as sextant explain CONFIG --layer N --after freeze lists them: layers.7.mlp.gelu; and a "
      "rank that runs it");
}

void OpFault::after(const OpRun& run) {
  if (!struck_ && run.op.path == op_ && !run.outputs.empty()) {
    spoil_first_number(run.outputs[0]);
    struck_ = true;
  }
  if (next_) next_->after(run);
}

}  // namespace sextant
