#include "exec/executor.h"

#include <chrono>
#include <vector>

#include "base/f16.h"
#include "base/halves.h"

namespace sextant {

void run_schedule(Bound& bound, Trace* trace) {
  for_each_unit(bound.program().schedule, [&](std::span<const Action> unit) { bound.run(unit, trace); });
  bound.settle();
}

void StateView::read_all(std::span<const Value* const> values, std::span<std::byte> destination) const {
  for (const Value* value : values) {
    const auto bytes = static_cast<size_t>(value->local_bytes().n);
    read(*value, destination.first(bytes));
    destination = destination.subspan(bytes);
  }
}

float DrawnPiece::element(int64_t row, int64_t column) const {
  if (init.kind == Init::Kind::ones) return 1;
  if (init.kind == Init::Kind::zeros) return 0;
  return static_cast<float>(random.normal(static_cast<uint64_t>(first + row * whole_width + column)) * init.std);
}

namespace {

template <class T, class Part>
void write_drawn(Bound& bound, const Value& value, const DrawnPiece& piece, const Part& part) {
  std::vector<T> line(static_cast<size_t>(piece.columns));
  for (int64_t row = 0; row < piece.rows; ++row) {
    for (int64_t column = 0; column < piece.columns; ++column)
      line[static_cast<size_t>(column)] = part(piece.element(row, column));
    bound.write(value, std::as_bytes(std::span(line)),
                (piece.at + row * piece.stride) * static_cast<int64_t>(sizeof(T)));
  }
}

}  // namespace

void Bound::draw(const Value& value, const DrawnPiece& piece) {
  if (value.dtype == DType::bf16)
    write_drawn<uint16_t>(*this, value, piece, upper_half);
  else if (value.dtype == DType::f16)
    write_drawn<uint16_t>(*this, value, piece, f16_bits);
  else if (value.dtype == DType::u16)
    write_drawn<uint16_t>(*this, value, piece, low_half);
  else
    write_drawn<float>(*this, value, piece, [](float x) { return x; });
}

// Where run returns when the work is done, that moment is now.
int64_t Executor::mark_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Executor::seconds_between(int64_t earlier, int64_t later) const {
  return 1e-9 * static_cast<double>(later - earlier);
}

}  // namespace sextant
