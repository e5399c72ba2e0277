#include "exec/cpu/wide_operands.h"

#include "base/bf16.h"
#include "base/f16.h"
#include "base/halves.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant {

namespace {

template <class Element>
void for_elements(ThreadTeam& team, int64_t count, Element&& element) {
  cpu::for_blocks(team, count, cpu::kElementsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) element(i);
  });
}

// `low`: the low halves of a bf16, or null.
void widen_elements(const Tensor& from, const uint16_t* low, float* to, ThreadTeam& team) {
  const auto* bits = from.as<const uint16_t>();
  if (from.dtype == DType::f16)
    for_elements(team, from.count(), [&](int64_t i) { to[i] = f16_value(bits[i]); });
  else if (low)
    for_elements(team, from.count(), [&](int64_t i) { to[i] = from_halves(bits[i], low[i]); });
  else
    for_elements(team, from.count(), [&](int64_t i) { to[i] = bf16_value(bits[i]); });
}

void round_elements(const float* from, const Tensor& to, uint16_t* low, ThreadTeam& team) {
  auto* bits = to.as<uint16_t>();
  if (to.dtype == DType::f16)
    for_elements(team, to.count(), [&](int64_t i) { bits[i] = f16_bits(from[i]); });
  else if (low)
    for_elements(team, to.count(), [&](int64_t i) { bits[i] = upper_half(from[i]), low[i] = low_half(from[i]); });
  else
    for_elements(team, to.count(), [&](int64_t i) { bits[i] = bf16_bits(from[i]); });
}

template <class T>
T* low_halves(const cpu::Widening::Place& place, std::span<const Tensor> side) {
  return place.low == cpu::Widening::kNone ? nullptr : side[static_cast<size_t>(place.low)].as<T>();
}

// As many as the kernel is given, in its types.
std::vector<Tensor> widened_operands(std::span<const Tensor> tensors, const LocalTypes& types) {
  std::vector<Tensor> wide(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(types.size()));
  for (size_t i = 0; i < wide.size(); ++i) wide[i].dtype = types[i].dtype;
  return wide;
}

}  // namespace

WideOperands::WideOperands(const cpu::Widening& widening, std::span<const Tensor> in, std::span<const Tensor> out,
                           std::byte* scratch)
    : in_places_(widening.inputs()),
      out_places_(widening.outputs()),
      in_(widened_operands(in, widening.wide_in)),
      out_(widened_operands(out, widening.wide_out)),
      scratch_(scratch) {}

void WideOperands::widen(std::span<const Tensor> in, std::span<const Tensor> out, ThreadTeam& team) {
  auto data_of = [&](const Place& place, std::span<const Tensor> side, size_t i) -> void* {
    if (place.master != cpu::Widening::kNone) return side[static_cast<size_t>(place.master)].data;
    return place.widened() ? static_cast<void*>(scratch_ + place.at) : side[i].data;
  };
  for (size_t i = 0; i < in_.size(); ++i) {
    const Place& place = in_places_[i];
    in_[i].data = data_of(place, in, i);
    if (place.at != cpu::Widening::kAsItIs)
      widen_elements(in[i], low_halves<const uint16_t>(place, in), in_[i].as<float>(), team);
  }
  for (size_t i = 0; i < out_.size(); ++i) out_[i].data = data_of(out_places_[i], out, i);
}

void WideOperands::round(std::span<const Tensor> out, ThreadTeam& team) const {
  for (size_t i = 0; i < out_.size(); ++i)
    if (out_places_[i].widened())
      round_elements(out_[i].as<const float>(), out[i], low_halves<uint16_t>(out_places_[i], out), team);
}

}  // namespace sextant
