#include "exec/cpu/wide_operands.h"

#include "base/f16.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant {

namespace {

void widen_elements(const Tensor& from, float* to, ThreadTeam& team) {
  const auto* bits = from.as<const uint16_t>();
  cpu::for_blocks(team, from.count(), cpu::kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = f16_value(bits[i]);
  });
}

void round_elements(const float* from, const Tensor& to, ThreadTeam& team) {
  auto* bits = to.as<uint16_t>();
  cpu::for_blocks(team, to.count(), cpu::kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) bits[i] = f16_bits(from[i]);
  });
}

// As many as the kernel is given, in its types.
std::vector<Tensor> stand_ins(std::span<const Tensor> tensors, const LocalTypes& types) {
  std::vector<Tensor> wide(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(types.size()));
  for (size_t i = 0; i < wide.size(); ++i) wide[i].dtype = types[i].dtype;
  return wide;
}

}  // namespace

WideOperands::WideOperands(const cpu::Widening& widening, std::span<const Tensor> in, std::span<const Tensor> out,
                           std::byte* scratch)
    : in_places_(widening.inputs()),
      out_places_(widening.outputs()),
      in_(stand_ins(in, widening.wide_in)),
      out_(stand_ins(out, widening.wide_out)),
      scratch_(scratch) {}

void WideOperands::widen(std::span<const Tensor> in, std::span<const Tensor> out, ThreadTeam& team) {
  auto place = [&](const Place& at, const Tensor& tensor) -> void* {
    if (at.in_master) return in.back().data;
    return at.widened() ? static_cast<void*>(scratch_ + at.at) : tensor.data;
  };
  for (size_t i = 0; i < in_.size(); ++i) {
    in_[i].data = place(in_places_[i], in[i]);
    if (in_places_[i].widened() && !in_places_[i].in_master) widen_elements(in[i], in_[i].as<float>(), team);
  }
  for (size_t i = 0; i < out_.size(); ++i) out_[i].data = place(out_places_[i], out[i]);
}

void WideOperands::round(std::span<const Tensor> out, ThreadTeam& team) const {
  for (size_t i = 0; i < out_.size(); ++i)
    if (out_places_[i].widened()) round_elements(out_[i].as<const float>(), out[i], team);
}

}  // namespace sextant
