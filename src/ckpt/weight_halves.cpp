#include "ckpt/weight_halves.h"

#include <algorithm>

#include "base/error.h"
#include "base/f16.h"
#include "base/halves.h"
#include "mesh/placement.h"

namespace sextant {

namespace {

template <class T>
std::vector<T> read_local(const StateView& state, const Value& value) {
  std::vector<T> local(static_cast<size_t>(value.local.count()));
  state.read(value, std::as_writable_bytes(std::span(local)));
  return local;
}

// Elements of `upper` where `low` has them, in low's arrangement.
std::vector<uint16_t> arranged_like(const StateView& state, const Value& upper, const Value& low) {
  std::vector<uint16_t> from = read_local<uint16_t>(state, upper), to(static_cast<size_t>(low.local.count()));
  Coordinate at = coordinate_of(state.program().mesh, state.rank());
  for (const Box& box : common_boxes(upper.shape, state.program().mesh, {upper.layout, at}, {low.layout, at})) {
    bool matrix = upper.shape.rank() == 2;
    int64_t rows = matrix ? box.extent[0] : 1, columns = matrix ? box.extent[1] : box.count();
    for (int64_t row = 0; row < rows; ++row) {
      int64_t source = matrix ? (box.from[0] + row) * upper.local[1] + box.from[1] : box.from.empty() ? 0 : box.from[0];
      int64_t target = matrix ? (box.to[0] + row) * low.local[1] + box.to[1] : box.to.empty() ? 0 : box.to[0];
      std::copy_n(from.begin() + source, columns, to.begin() + target);
    }
  }
  return to;
}

std::vector<float> widened(std::span<const uint16_t> halves, float (*value)(uint16_t)) {
  std::vector<float> full(halves.size());
  std::transform(halves.begin(), halves.end(), full.begin(), value);
  return full;
}

template <class Half>
void write_half(Bound& bound, const Value& part, std::span<const float> local, const Half& half) {
  std::vector<uint16_t> halves(local.size());
  for (size_t i = 0; i < local.size(); ++i) halves[i] = half(local[i]);
  bound.write(part, std::as_bytes(std::span(halves)));
}

}  // namespace

std::vector<const Value*> parts_of_weight(const Program& program, const Value& parameter) {
  std::vector<const Value*> parts{&parameter};
  for (const Value& value : program.values)
    if (value.kind == ValueKind::low_bits && value.of == parameter.id) parts.push_back(&value);
  return parts;
}

std::vector<float> read_weight(const StateView& state, const Value& parameter) {
  if (parameter.dtype == DType::f32) return read_local<float>(state, parameter);
  std::vector<const Value*> parts = parts_of_weight(state.program(), parameter);
  if (parts.back()->dtype == DType::f32) return read_local<float>(state, *parts.back());
  if (parameter.dtype == DType::f16) return widened(read_local<uint16_t>(state, parameter), f16_value);
  BUG_IF(parameter.dtype != DType::bf16, "{}: weights are f32, bf16 or f16, this one is {}", parameter.path,
         name_of(parameter.dtype));
  std::vector<uint16_t> low(static_cast<size_t>(parts.back()->local.count()), 0);
  if (parts.size() == 2) low = read_local<uint16_t>(state, *parts[1]);
  std::vector<uint16_t> upper = arranged_like(state, parameter, *parts.back());
  std::vector<float> full(upper.size());
  for (size_t i = 0; i < full.size(); ++i) full[i] = from_halves(upper[i], low[i]);
  return full;
}

void write_weight(Bound& bound, const Value& part, std::span<const float> local) {
  if (part.dtype == DType::f32) return bound.write(part, std::as_bytes(local));
  if (part.dtype == DType::f16) return write_half(bound, part, local, f16_bits);
  part.dtype == DType::bf16 ? write_half(bound, part, local, upper_half) : write_half(bound, part, local, low_half);
}

}  // namespace sextant
