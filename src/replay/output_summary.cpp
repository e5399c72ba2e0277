#include "replay/output_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"
#include "base/fp8.h"

namespace sextant {

namespace {

// Steele, Lea and Flood's mix of a counter, "Fast splittable pseudorandom number generators" (2014).
uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

template <class Number>
double number_at(const std::byte* data, int64_t i) {
  Number x;
  std::memcpy(&x, data + i * static_cast<int64_t>(sizeof x), sizeof x);
  return static_cast<double>(x);
}

double element_at(DType dtype, const std::byte* data, int64_t i) {
  auto half = [&] {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, sizeof bits);
    return bits;
  };
  switch (dtype) {
    case DType::f64:
      return number_at<double>(data, i);
    case DType::f32:
      return number_at<float>(data, i);
    case DType::bf16:
      return static_cast<double>(bf16_value(half()));
    case DType::f16:
      return static_cast<double>(f16_value(half()));
    case DType::e4m3:
    case DType::e5m2:
      return static_cast<double>(fp8_value(fp8_format(dtype), static_cast<uint8_t>(data[i])));
    case DType::i64:
      return number_at<int64_t>(data, i);
    case DType::i32:
      return number_at<int32_t>(data, i);
    case DType::u32:
      return number_at<uint32_t>(data, i);
    case DType::u16:
      return number_at<uint16_t>(data, i);
    case DType::u8:
      return number_at<uint8_t>(data, i);
  }
  BUG("unknown dtype");
}

class Summarizer {
 public:
  Summarizer(const Tensor& tensor, const GlobalShape& whole, int64_t first_element)
      : tensor_(tensor), whole_(whole), first_(first_element), at_(static_cast<size_t>(whole.rank()), 0) {
    summary_.least = std::numeric_limits<double>::infinity();
    summary_.most = -summary_.least;
  }

  OutputSummary run() {
    visit(0, 0, 0);
    if (summary_.count == summary_.non_finite) summary_.least = summary_.most = 0;
    return std::move(summary_);
  }

 private:
  // Of the elements whose first `dim` indices are given: `local` and `global` are the rows before them.
  void visit(int dim, int64_t local, int64_t global) {
    if (dim == whole_.rank()) return take(local, global);
    for_each_span(dim, [&](const Span& span) {
      for (int64_t i = 0; i < span.count; ++i) {
        at_[static_cast<size_t>(dim)] = span.global + i;
        visit(dim + 1, local * tensor_.shape[dim] + span.local + i, global * whole_[dim] + span.global + i);
      }
    });
  }

  template <class Visit>
  void for_each_span(int dim, Visit visit_span) {
    if (!tensor_.placement) return visit_span(Span{0, 0, tensor_.shape[dim]});
    for (const Span& span : tensor_.placement->dims[static_cast<size_t>(dim)]) visit_span(span);
  }

  void take(int64_t local, int64_t global) {
    double x = element_at(tensor_.dtype, static_cast<const std::byte*>(tensor_.data), local);
    ++summary_.count;
    summary_.hash = mixed(summary_.hash ^ std::bit_cast<uint64_t>(x));
    if (!std::isfinite(x)) {
      if (summary_.non_finite++ == 0) summary_.first_non_finite = at_;
      return;
    }
    summary_.least = std::min(summary_.least, x);
    summary_.most = std::max(summary_.most, x);
    summary_.sum_squares += x * x;
    uint64_t signs = mixed(static_cast<uint64_t>(first_ + global));
    for (size_t i = 0; i < Fingerprint::kProjections; ++i)
      summary_.fingerprint.sums[i] += (signs >> i & 1) != 0 ? x : -x;
  }

  const Tensor& tensor_;
  const GlobalShape& whole_;
  int64_t first_;
  std::vector<int64_t> at_;
  OutputSummary summary_;
};

}  // namespace

Fingerprint& Fingerprint::operator+=(const Fingerprint& other) {
  for (size_t i = 0; i < kProjections; ++i) sums[i] += other.sums[i];
  return *this;
}

double Fingerprint::norm() const {
  return distance({});
}

double Fingerprint::distance(const Fingerprint& other) const {
  double squares = 0;
  for (size_t i = 0; i < kProjections; ++i) squares += (sums[i] - other.sums[i]) * (sums[i] - other.sums[i]);
  return std::sqrt(squares / kProjections);
}

double OutputSummary::rms() const {
  int64_t finite = count - non_finite;
  return finite > 0 ? std::sqrt(sum_squares / static_cast<double>(finite)) : 0;
}

void OutputSummary::merge(const OutputSummary& other) {
  bool none = count == non_finite, others_none = other.count == other.non_finite;
  if (!others_none) {
    least = none ? other.least : std::min(least, other.least);
    most = none ? other.most : std::max(most, other.most);
  }
  if (first_non_finite.empty()) first_non_finite = other.first_non_finite;
  count += other.count;
  non_finite += other.non_finite;
  sum_squares += other.sum_squares;
  fingerprint += other.fingerprint;
}

OutputSummary summarize(const Tensor& tensor, const GlobalShape& whole, int64_t first_element) {
  return Summarizer(tensor, whole, first_element).run();
}

}  // namespace sextant
