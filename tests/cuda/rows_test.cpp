// The pieces that head_loss and linear are made of, against closed forms in double: cross-entropy over rows of logits,
// their log-sum-exp, sums of columns.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "cuda/device_runner.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/cross_entropy.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {
namespace {

Numbers draw(std::string_view purpose, int64_t n, double size) {
  Random random(1, purpose);
  Numbers numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = size * random.normal(i);
  return numbers;
}

struct Sizes {
  int64_t rows, vocabulary, stride;
};

// Rows of logits on the device. NaN stands in the padding.
struct Logits {
  Sizes sizes;
  GuardedBytes bytes;
  Tensor tensor;
  Numbers exact;  // as rounded

  Logits(const Sizes& s, DType dtype)
      : sizes(s), bytes(s.rows * s.stride * size_of(dtype)), tensor{bytes.data(), dtype, {s.rows, s.stride}} {
    Numbers numbers = draw("logits", s.rows * s.stride, 3);
    for (size_t i = 0; i < numbers.size(); ++i)
      if (static_cast<int64_t>(i) % s.stride >= s.vocabulary) numbers[i] = std::nan("");
    write_to_device(tensor, numbers);
    exact = read_from_device(tensor);
  }

  double at(int64_t row, int64_t column) const { return exact[static_cast<size_t>(row * sizes.stride + column)]; }

  double lse(int64_t row) const {
    double sum = 0;
    for (int64_t j = 0; j < sizes.vocabulary; ++j) sum += std::exp(at(row, j));
    return std::log(sum);
  }
};

constexpr double kZLoss = 1e-3, kDloss = 0.25;

struct Expected {
  Numbers losses, gradient;
};

// `first`: the id of this rank's first column. `lse`: of the whole vocabulary, per row.
Expected expect(const Logits& logits, const Numbers& targets, int64_t first, const Numbers& lse) {
  Expected expected{Numbers(targets.size()), Numbers(logits.exact.size())};
  for (int64_t row = 0; row < logits.sizes.rows; ++row) {
    double whole = lse[static_cast<size_t>(row)];
    auto target = static_cast<int64_t>(targets[static_cast<size_t>(row)]);
    if (target < 0) continue;
    for (int64_t j = 0; j < logits.sizes.vocabulary; ++j) {
      double p = std::exp(logits.at(row, j) - whole);
      expected.gradient[static_cast<size_t>(row * logits.sizes.stride + j)] =
          kDloss * (p * (1 + 2 * kZLoss * whole) - (j == target - first ? 1 : 0));
    }
    if (target >= first && target < first + logits.sizes.vocabulary)
      expected.losses[static_cast<size_t>(row)] = whole - logits.at(row, target - first) + kZLoss * whole * whole;
  }
  return expected;
}

class CudaRows : public OnDevice {
 protected:
  Tensor place(DType dtype, const LocalShape& shape, const Numbers& numbers) {
    buffers_.emplace_back(shape.count() * size_of(dtype));
    Tensor tensor{buffers_.back().data(), dtype, shape};
    if (!numbers.empty()) write_to_device(tensor, numbers);
    return tensor;
  }

  void finish() {
    check_cuda(cudaGetLastError(), "launch");
    check_cuda(cudaStreamSynchronize(device().stream()), "run");
    for (const GuardedBytes& buffer : buffers_) EXPECT_TRUE(buffer.end_is_whole()) << "written behind a buffer";
  }

  void TearDown() override { buffers_.clear(); }

 private:
  std::vector<GuardedBytes> buffers_;
};

Numbers targets_below(int64_t rows, int64_t vocabulary) {
  Random random(1, "targets");
  Numbers targets(static_cast<size_t>(rows));
  for (size_t i = 0; i < targets.size(); ++i)
    targets[i] = i % 4 == 3 ? -1 : static_cast<double>(random.below(i, static_cast<uint64_t>(vocabulary)));
  targets[0] = static_cast<double>(vocabulary - 1);
  return targets;
}

TEST_F(CudaRows, CrossEntropyOfAWholeVocabulary) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (const Sizes& sizes : {Sizes{5, 50304, 50304}, Sizes{3, 128256, 128256}, Sizes{6, 1003, 1024},
                               Sizes{6, 1003, 1003}, Sizes{4, 7, 64}, Sizes{4, 50257, 50304}}) {
      SCOPED_TRACE(fmt::format("{} {} of {}", name_of(dtype), sizes.vocabulary, sizes.stride));
      Logits logits(sizes, dtype);
      Numbers targets = targets_below(sizes.rows, sizes.vocabulary), lse;
      for (int64_t row = 0; row < sizes.rows; ++row) lse.push_back(logits.lse(row));
      Expected expected = expect(logits, targets, 0, lse);
      Tensor w{nullptr, dtype, {sizes.vocabulary, 1}};
      Tensor losses = place(DType::f32, {sizes.rows}, {}), total = place(DType::f32, {}, {});
      cuda::LogitRows rows{.logits = logits.tensor.data,
                           .dtype = dtype,
                           .rows = sizes.rows,
                           .vocabulary = sizes.vocabulary,
                           .stride = sizes.stride,
                           .targets = place(DType::i32, {sizes.rows}, targets).as<int32_t>(),
                           .w = &w,
                           .z_loss = kZLoss,
                           .losses = losses.as<float>(),
                           .stream = device().stream()};
      cuda::log_sum_exp_rows(rows);
      finish();
      EXPECT_LT(relative_error(read_from_device(losses), lse), 1e-6);
      cuda::cross_entropy_rows(rows);
      finish();
      EXPECT_LT(relative_error(read_from_device(losses), expected.losses), 1e-5);
      rows.dloss = place(DType::f32, {}, {kDloss}).as<float>();
      cuda::cross_entropy_rows(rows);
      cuda::sum_numbers(losses.as<float>(), sizes.rows, total.as<float>(), device().stream());
      finish();
      EXPECT_LT(relative_error(read_from_device(losses), expected.losses), 1e-5);
      EXPECT_LT(relative_error(read_from_device(logits.tensor), expected.gradient), dtype == DType::bf16 ? 1e-2 : 1e-5);
      double sum = 0;
      for (double loss : expected.losses) sum += loss;
      EXPECT_NEAR(read_from_device(total)[0] / sum, 1, 1e-5);
      EXPECT_TRUE(logits.bytes.end_is_whole());
    }
}

// This rank has ids 1000 to 1499 of 2000, and the log-sum-exps of both halves come from outside.
TEST_F(CudaRows, CrossEntropyOfAPartOfTheVocabulary) {
  Sizes sizes{9, 500, 512};
  Placement placement{{{{.global = 1000, .local = 0, .count = 500}}, {{.global = 0, .local = 0, .count = 1}}}};
  for (DType dtype : {DType::f32, DType::bf16}) {
    Logits logits(sizes, dtype);
    Numbers targets = targets_below(sizes.rows, 2000), parts = draw("parts", 2 * sizes.rows, 1), lse;
    targets[1] = 1499;
    targets[2] = 999;
    for (double& part : parts) part = static_cast<float>(part + 6);
    for (size_t row = 0; row < static_cast<size_t>(sizes.rows); ++row)
      lse.push_back(std::log(std::exp(parts[row]) + std::exp(parts[row + static_cast<size_t>(sizes.rows)])));
    Expected expected = expect(logits, targets, 1000, lse);
    Tensor w{nullptr, dtype, {500, 1}, &placement};
    Tensor losses = place(DType::f32, {sizes.rows}, {});
    cuda::cross_entropy_rows({.logits = logits.tensor.data,
                              .dtype = dtype,
                              .rows = sizes.rows,
                              .vocabulary = sizes.vocabulary,
                              .stride = sizes.stride,
                              .targets = place(DType::i32, {sizes.rows}, targets).as<int32_t>(),
                              .w = &w,
                              .z_loss = kZLoss,
                              .dloss = place(DType::f32, {}, {kDloss}).as<float>(),
                              .parts = place(DType::f32, {2, sizes.rows}, parts).as<float>(),
                              .groups = 2,
                              .parts_rows = sizes.rows,
                              .losses = losses.as<float>(),
                              .stream = device().stream()});
    finish();
    EXPECT_LT(relative_error(read_from_device(losses), expected.losses), 1e-5);
    EXPECT_LT(relative_error(read_from_device(logits.tensor), expected.gradient), dtype == DType::bf16 ? 1e-2 : 1e-5);
  }
}

TEST_F(CudaRows, NoColumnsHaveNoLogSumExp) {
  Tensor logits = place(DType::f32, {2, 64}, {}), lse = place(DType::f32, {2}, {});
  cuda::log_sum_exp_rows({.logits = logits.data,
                          .dtype = DType::f32,
                          .rows = 2,
                          .vocabulary = 0,
                          .stride = 64,
                          .losses = lse.as<float>(),
                          .stream = device().stream()});
  finish();
  for (double x : read_from_device(lse)) EXPECT_EQ(x, -std::numeric_limits<double>::infinity());
}

TEST_F(CudaRows, SumsOfColumns) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (auto [rows, width] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {1000, 131}, {777, 2304}, {70000, 16}, {64, 9000}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}", name_of(dtype), rows, width));
      Tensor x = place(dtype, {rows, width}, draw("x", rows * width, 1));
      Numbers exact(static_cast<size_t>(width), 2), numbers = read_from_device(x);
      Tensor out = place(DType::f32, {width}, exact);
      for (size_t i = 0; i < numbers.size(); ++i) exact[i % static_cast<size_t>(width)] += numbers[i];
      Tensor scratch = place(DType::u8, {cuda::column_sums_workspace(rows, width)}, {});
      for (auto write : {cuda::ColumnSums::Write::add, cuda::ColumnSums::Write::over}) {
        cuda::sum_columns({.x = x.data,
                           .dtype = dtype,
                           .rows = rows,
                           .width = width,
                           .out = out.as<float>(),
                           .write = write,
                           .workspace = scratch.as<std::byte>(),
                           .stream = device().stream()});
        finish();
        EXPECT_LT(relative_error(read_from_device(out), exact), 1e-5);
        for (double& sum : exact) sum -= 2;
      }
    }
}

}  // namespace
}  // namespace sextant
