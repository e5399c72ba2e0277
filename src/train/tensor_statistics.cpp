#include "train/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/error.h"
#include "train/counted_part.h"

namespace sextant {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A number of a value's bytes; in f64 where a step is replayed in it.
double number_at(const Value& value, std::span<const std::byte> bytes, size_t i) {
  if (value.dtype == DType::f64) {
    double number = 0;
    std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
    return number;
  }
  BUG_IF(value.dtype != DType::f32, "{} is measured in {}", value.path, name_of(value.dtype));
  float number = 0;
  std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
  return static_cast<double>(number);
}

}  // namespace

TensorReader::TensorReader(const std::vector<Program>& programs, const Bound& bound) {
  for (const Program& program : programs)
    for (const Measurement& m : measurements_in(program))
      layers_ = std::max(layers_, static_cast<size_t>(m.measured.layer) + 1);
  for (const Measurement& m : measurements_in(bound.program()))
    values_.push_back({m, counts_part(bound.program(), bound.rank(), *m.value)});
}

void TensorReader::read(const Bound& bound, TensorParts& parts) const {
  parts.sums.assign(layers_ * kTensors * kSums, 0.0);
  parts.largest.assign(layers_ * kTensors, -std::numeric_limits<double>::infinity());
  std::vector<const Value*> values;
  size_t size = 0;
  for (const Read& value : values_) {
    values.push_back(value.of.value);
    size += static_cast<size_t>(value.of.value->local_bytes().n);
  }
  std::vector<std::byte> read(size);
  bound.read_all(values, read);
  std::span<const std::byte> left(read);
  for (const Read& value : values_) {
    const Value& of = *value.of.value;
    const auto count = static_cast<size_t>(of.local.count());
    BUG_IF(count > kSums, "{} has too many numbers", of.path);
    if (value.of.measured.numbers == MeasuredNumbers::largest) {
      double& most = parts.largest[place(value.of)];
      double number = number_at(of, left, 0);
      if (!(number <= most) && !std::isnan(most)) most = number;
    } else if (value.counted) {
      for (size_t i = 0; i < count; ++i) parts.sums[place(value.of) * kSums + i] += number_at(of, left, i);
    }
    left = left.subspan(static_cast<size_t>(of.local_bytes().n));
  }
}

TensorStatistics TensorReader::joined(TensorParts parts, HostGroup& group, double loss_scale) const {
  std::vector<double>&sums = parts.sums, &largest = parts.largest;
  group.sum(sums);
  group.largest(largest);
  TensorStatistics out;
  auto fill = [&](TensorStatistics::List& list, MeasuredTensor tensor, auto number) {
    list.clear();
    bool any = false;
    for (size_t layer = 0; layer < layers_; ++layer) {
      size_t at = layer * kTensors + static_cast<size_t>(tensor);
      bool has = sums[at * kSums] != 0 || largest[at] != -std::numeric_limits<double>::infinity();
      list.push_back(has ? number(&sums[at * kSums], largest[at]) : kNone);
      any = any || has;
    }
    if (!any) list.clear();
  };
  auto rms = [](const double* of, double) { return std::sqrt(of[1] / of[0]); };
  auto share = [](size_t i) { return [i](const double* of, double) { return of[i] / of[0]; }; };
  auto most = [](const double*, double most_of_all) { return most_of_all; };
  auto unscaled = [&](auto number) {
    return [=](const double* of, double most_of_all) { return number(of, most_of_all) / loss_scale; };
  };
  using enum MeasuredTensor;
  fill(out.activation_rms, activation, rms);
  fill(out.activation_max, activation, most);
  fill(out.activation_underflow, activation, share(2));
  fill(out.activation_overflow, activation, share(3));
  fill(out.activation_gradient_rms, activation_gradient, unscaled(rms));
  fill(out.activation_gradient_max, activation_gradient, unscaled(most));
  fill(out.gradient_underflow, activation_gradient, share(2));
  fill(out.gradient_overflow, activation_gradient, share(3));
  fill(out.inner_gradient_underflow, inner_gradient, share(2));
  fill(out.fp8_activation_underflow, fp8_activation, share(1));
  fill(out.fp8_activation_saturation, fp8_activation, share(2));
  fill(out.fp8_gradient_underflow, fp8_gradient, share(1));
  fill(out.fp8_gradient_saturation, fp8_gradient, share(2));
  fill(out.attention_logit_max, attention, most);
  // Of weights: how many, squares of the change, squares; of their gradients the squares alone.
  fill(out.gradient_max, gradient, unscaled(most));
  fill(out.weight_max, weight, most);
  fill(out.weight_rms, weight, [](const double* of, double) { return std::sqrt(of[2] / of[0]); });
  fill(out.update_ratio, weight, [](const double* of, double) { return std::sqrt(of[1] / of[2]); });
  for (size_t layer = 0; layer < out.weight_rms.size(); ++layer) {
    auto sums_of = [&](MeasuredTensor tensor) {
      return &sums[(layer * kTensors + static_cast<size_t>(tensor)) * kSums];
    };
    out.gradient_rms.push_back(std::sqrt(sums_of(gradient)[0] / sums_of(weight)[0]) / loss_scale);
  }
  return out;
}

}  // namespace sextant
