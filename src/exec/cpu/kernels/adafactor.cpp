#include <algorithm>
#include <cmath>
#include <vector>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

// Which packed tensor a row of what this rank holds belongs to. There are two for each of hundreds of experts.
class PackedRows {
 public:
  PackedRows(const Attrs& attrs, const Tensor& tensor)
      : rows_(attrs.integers("packed")), of_(static_cast<size_t>(tensor.shape[0])) {
    std::vector<int64_t> ends;
    for (int64_t rows : rows_) ends.push_back(rows + (ends.empty() ? 0 : ends.back()));
    for (size_t local = 0; local < of_.size(); ++local) {
      int64_t row = tensor.global_index(0, static_cast<int64_t>(local));
      auto at = std::ranges::upper_bound(ends, row);
      of_[local] = row < 0 || at == ends.end() ? -1 : at - ends.begin();
    }
  }

  // -1 in padding.
  int64_t of(int64_t local_row) const { return of_[static_cast<size_t>(local_row)]; }
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  int64_t rows(int64_t packed) const { return rows_[static_cast<size_t>(packed)]; }

  // Adds up what each row left, in order.
  template <class T>
  void add_up(const double* of_rows, T* sums) const {
    std::vector<double> all(rows_.size());
    for (size_t row = 0; row < of_.size(); ++row)
      if (of_[row] >= 0) all[static_cast<size_t>(of_[row])] += of_rows[row];
    for (size_t packed = 0; packed < all.size(); ++packed) sums[packed] = static_cast<T>(all[packed]);
  }

 private:
  const std::vector<int64_t>& rows_;
  std::vector<int64_t> of_;
};

template <class Body>
void for_rows(const KernelCall& call, int64_t rows, int64_t width, const Body& body) {
  for_blocks(call.team, rows, rows_per_task(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

double weight_of_step(const KernelCall& call, int32_t step) {
  return std::pow(static_cast<double>(step), call.attrs.real("beta2_decay"));
}

constexpr int64_t kColumnsPerTask = 64;

// Each task has some columns of all rows, one below the other.
template <class T>
void add_columns(const KernelCall& call, const PackedRows& packed, const T* g, double scale, T* columns) {
  int64_t rows = call.in[1].shape[0], width = call.in[1].shape[1];
  for_blocks(call.team, width, kColumnsPerTask, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(packed.count() * kColumnsPerTask));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t of = packed.of(row);
      if (of < 0) continue;
      double* of_row = sums.data() + of * kColumnsPerTask;
      for (int64_t i = begin; i < end; ++i) {
        double x = scale * static_cast<double>(g[row * width + i]);
        of_row[i - begin] += x * x;
      }
    }
    for (int64_t of = 0; of < packed.count(); ++of)
      for (int64_t i = begin; i < end; ++i)
        columns[of * width + i] = static_cast<T>(sums[static_cast<size_t>(of * kColumnsPerTask + i - begin)]);
  });
}

void run_sums(const KernelCall& call) {
  for_real_type(call.in[1].dtype, [&]<class T>() {
    const T *p = call.in[0].as<T>(), *g = call.in[1].as<T>();
    auto scale = static_cast<double>(*call.in[2].as<T>());
    int64_t rows = call.in[1].shape[0], width = call.in[1].shape[1];
    T* row_sums = call.out[0].as<T>();
    auto* squares = reinterpret_cast<double*>(call.workspace);
    for_rows(call, rows, width, [&](int64_t row) {
      row_sums[row] = static_cast<T>(scale * scale * square_sum(g + row * width, width));
      squares[row] = square_sum(p + row * width, width);
    });
    const PackedRows packed(call.attrs, call.in[1]);
    add_columns(call, packed, g, scale, call.out[1].as<T>());
    packed.add_up(squares, call.out[2].as<T>());
  });
}

void run_means(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    const T *row_sums = call.in[0].as<T>(), *column_sums = call.in[1].as<T>();
    T *r = call.out[0].as<T>(), *c = call.out[1].as<T>(), *means = call.out[2].as<T>();
    double weight = *call.in[5].as<T>() == 0 ? 0 : weight_of_step(call, *call.in[4].as<int32_t>());
    int64_t width = call.out[1].shape[1];
    const std::vector<int64_t>& packed = call.attrs.integers("packed");
    auto move = [&](T& mean, T sum, int64_t count) {
      auto now = static_cast<double>(mean);
      if (weight > 0)
        mean = static_cast<T>(now + weight * (static_cast<double>(sum) / static_cast<double>(count) - now));
    };
    int64_t row = 0;
    for (size_t of = 0; of < packed.size(); ++of) {
      double sum = 0;
      for (int64_t end = row + packed[of]; row < end; ++row) {
        move(r[row], row_sums[row], width);
        sum += static_cast<double>(r[row]);
      }
      for (int64_t i = static_cast<int64_t>(of) * width; i < static_cast<int64_t>(of + 1) * width; ++i)
        move(c[i], column_sums[i], packed[of]);
      means[of] = static_cast<T>(sum / static_cast<double>(packed[of]));
    }
  });
}

void run_direction(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *g = call.in[0].as<T>(), *r = call.in[1].as<T>(), *c = call.in[2].as<T>(), *means = call.in[3].as<T>();
    T *u = call.out[0].as<T>(), scale = *call.in[4].as<T>();
    double eps = call.attrs.real("eps");
    PackedRows packed(call.attrs, call.in[0]);
    int64_t rows = call.in[0].shape[0], width = call.in[0].shape[1];
    auto* squares = reinterpret_cast<double*>(call.workspace);
    for_rows(call, rows, width, [&](int64_t row) {
      int64_t of = std::max<int64_t>(0, packed.of(row));
      double part = static_cast<double>(r[row]) / std::max(static_cast<double>(means[of]), eps), sum = 0;
      for (int64_t i = 0; i < width; ++i) {
        double variance = std::max(part * static_cast<double>(c[of * width + i]), eps * eps);
        double x = static_cast<double>(scale * g[row * width + i]) / std::sqrt(variance);
        u[row * width + i] = static_cast<T>(x);
        sum += x * x;
      }
      squares[row] = sum;
    });
    packed.add_up(squares, call.out[1].as<T>());
  });
}

void run_vector(const KernelCall& call) {
  for_real_type(call.in[1].dtype, [&]<class T>() {
    const T *p = call.in[0].as<T>(), *g = call.in[1].as<T>();
    T *u = call.out[0].as<T>(), *v = call.out[1].as<T>();
    auto scale = static_cast<double>(*call.in[4].as<T>());
    double weight = scale == 0 ? 0 : weight_of_step(call, *call.in[3].as<int32_t>()), eps = call.attrs.real("eps");
    int64_t n = call.in[1].shape[0];
    auto *updates = reinterpret_cast<double*>(call.workspace), *weights = updates + n;
    for (int64_t i = 0; i < n; ++i) {
      double gradient = scale * static_cast<double>(g[i]), now = static_cast<double>(v[i]);
      if (weight > 0) v[i] = static_cast<T>(now + weight * (gradient * gradient - now));
      double x = gradient / std::sqrt(std::max(static_cast<double>(v[i]), eps * eps));
      u[i] = static_cast<T>(x);
      updates[i] = x * x;
      weights[i] = static_cast<double>(p[i]) * static_cast<double>(p[i]);
    }
    PackedRows packed(call.attrs, call.in[1]);
    packed.add_up(updates, call.out[2].as<T>());
    packed.add_up(weights, call.out[3].as<T>());
  });
}

void run_adafactor_step(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    T *p = call.out[0].as<T>(), *u = call.in[1].as<T>();
    const T *update_squares = call.in[2].as<T>(), *weight_squares = call.in[3].as<T>();
    auto lr = static_cast<double>(*call.in[4].as<T>());
    if (*call.in[6].as<T>() == 0) return;
    PackedRows packed(call.attrs, call.out[0]);
    double relative = std::min(lr, 1 / std::sqrt(static_cast<double>(*call.in[5].as<int32_t>())));
    auto keep = static_cast<T>(1 - lr * call.attrs.real("weight_decay"));
    double row_elements = call.attrs.real("row_elements");
    auto length = [&](int64_t of) {
      double elements = static_cast<double>(packed.rows(of)) * row_elements;
      double size = std::max(call.attrs.real("min_rms"), std::sqrt(static_cast<double>(weight_squares[of]) / elements));
      double clip = std::sqrt(static_cast<double>(update_squares[of]) / elements) / call.attrs.real("update_clip");
      return relative * size / std::max(1.0, clip);
    };
    int64_t rows = call.out[0].shape[0], width = call.out[0].count() / std::max<int64_t>(1, rows);
    for_rows(call, rows, width, [&](int64_t row) {
      auto step = static_cast<T>(length(std::max<int64_t>(0, packed.of(row))));
      for (int64_t i = row * width; i < (row + 1) * width; ++i) p[i] = keep * p[i] - step * u[i];
    });
  });
}

}  // namespace

const CpuKernel adafactor_sums{.run = run_sums};
const CpuKernel adafactor_means{.run = run_means};
const CpuKernel adafactor_direction{.run = run_direction};
const CpuKernel adafactor_vector{.run = run_vector};
const CpuKernel adafactor_step{.run = run_adafactor_step};

}  // namespace sextant::cpu
