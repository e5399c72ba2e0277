// Kernels cut their work into blocks by shape. Here every kernel gets at least three blocks and a remainder: every
// example of every op, grown along its first dim until streaming kernels have many tasks, against runs of the example's
// own size put together as the definition's row says; and what only grows along other dims (depth and width of
// GEMMs, columns of sums, chunks of logits) against naive formulas in double, in both precisions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "exec/cpu/kernels/blocks.h"
#include "exec/kernel_runner.h"
#include "ir/signature.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr double kDouble = 1e-12, kSingle = 1e-5;

struct Grown {
  const OpDef* def;
  Example piece, whole;
  int64_t pieces;
  LayoutRow row;  // which operands are cut along dim 0, and which outputs are sums over the pieces
};

bool cuts_first_dim(const OpDef& def) {
  auto along_batch = [](std::string_view row) { return row == "b" || row == "*" || row.find("S(b)") != row.npos; };
  return std::ranges::any_of(def.rows, along_batch);
}

bool is_cut(const AxisState& state) {
  return state.kind == StateKind::sharded && state.dim == 0;
}

// The row that cuts dim 0 of the first input.
LayoutRow row_along_first_dim(const OpDef& def, const Example& example) {
  TensorTypes outputs = infer_types(def, example.attrs, example.inputs);
  std::vector<int> in, out;
  for (const TensorType& type : example.inputs) in.push_back(type.shape.rank());
  for (const TensorType& type : outputs) out.push_back(type.shape.rank());
  for (const LayoutRow& row : layout_rows(def, in, out))
    if (!row.inputs.empty() && is_cut(row.inputs[0])) return row;
  return {};
}

Example times(const Example& example, const LayoutRow& row, int64_t factor) {
  Example grown = example;
  for (size_t i = 0; i < grown.inputs.size(); ++i)
    if (is_cut(row.inputs[i])) grown.inputs[i].shape[0] *= factor;
  return grown;
}

int64_t largest_cut_input(const Example& example, const LayoutRow& row) {
  int64_t most = 0;
  for (size_t i = 0; i < example.inputs.size(); ++i)
    if (is_cut(row.inputs[i])) most = std::max(most, example.inputs[i].shape.count());
  return most;
}

std::vector<Grown> grown_examples() {
  constexpr int64_t kPieceElements = 1000;                  // well inside one task
  constexpr int64_t kElements = 7 * cpu::kElementsPerTask;  // an operand half as wide still has three blocks
  std::vector<Grown> grown;
  for (const OpDef* def : all_ops()) {
    if (!cpu_kernel(*def).run || !cuts_first_dim(*def)) continue;
    for (const Example& example : def->examples) {
      LayoutRow row = row_along_first_dim(*def, example);
      if (row.inputs.empty()) continue;
      Example piece = times(example, row, std::max<int64_t>(1, kPieceElements / largest_cut_input(example, row)));
      int64_t pieces = kElements / largest_cut_input(piece, row) | 1;  // odd: the last block is not full
      grown.push_back({def, piece, times(piece, row, pieces), pieces, row});
    }
  }
  return grown;
}

class KernelBlocks : public testing::TestWithParam<Grown> {};

TEST_P(KernelBlocks, ManyBlocksGiveWhatTheirPartsGive) {
  const Grown& grown = GetParam();
  std::vector<Numbers> inputs = draw_inputs(*grown.def, grown.whole);
  KernelRun run{
      .def = *grown.def, .attrs = grown.whole.attrs, .types = grown.whole.inputs, .inputs = inputs, .threads = 2};
  std::vector<Numbers> whole = run_kernel(run), expected(whole.size());
  run.real = DType::f32;
  std::vector<Numbers> single = run_kernel(run);
  for (int64_t at = 0; at < grown.pieces; ++at) {
    KernelRun part{.def = *grown.def, .attrs = grown.piece.attrs, .types = grown.piece.inputs, .inputs = {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      int64_t count = grown.piece.inputs[i].shape.count(), first = is_cut(grown.row.inputs[i]) ? at * count : 0;
      part.inputs.emplace_back(inputs[i].begin() + first, inputs[i].begin() + first + count);
      if (grown.row.inputs[i].kind == StateKind::partial && at > 0) std::ranges::fill(part.inputs.back(), 0);
    }
    std::vector<Numbers> out = run_kernel(part);
    for (size_t o = 0; o < out.size(); ++o) {
      if (is_cut(grown.row.outputs[o])) {
        expected[o].insert(expected[o].end(), out[o].begin(), out[o].end());
      } else if (grown.row.outputs[o].kind == StateKind::partial) {
        expected[o].resize(out[o].size());
        for (size_t i = 0; i < out[o].size(); ++i) expected[o][i] += out[o][i];
      } else {
        expected[o] = out[o];
      }
    }
  }
  for (size_t o = 0; o < whole.size(); ++o) {
    ASSERT_EQ(whole[o].size(), expected[o].size()) << "output " << o;
    EXPECT_LT(relative_error(whole[o], expected[o]), kDouble) << "output " << o;
    EXPECT_LT(relative_error(single[o], expected[o]), kSingle) << "output " << o << " in single precision";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, KernelBlocks, testing::ValuesIn(grown_examples()), [](const auto& info) {
  return fmt::format("{}_{}_{}", info.param.def->name, info.param.piece.name, info.index);
});

// Runs an op in both precisions and holds every output to `expected`.
void expect_outputs(const OpDef& def, const Example& example, const std::vector<Numbers>& inputs,
                    const std::vector<Numbers>& expected) {
  for (DType real : {DType::f64, DType::f32}) {
    std::vector<Numbers> out = run_kernel(
        {.def = def, .attrs = example.attrs, .types = example.inputs, .inputs = inputs, .real = real, .threads = 2});
    ASSERT_EQ(out.size(), expected.size());
    for (size_t o = 0; o < out.size(); ++o)
      EXPECT_LT(relative_error(out[o], expected[o]), real == DType::f64 ? kDouble : kSingle)
          << name_of(real) << ", output " << o;
  }
}

// Blocks of a GEMM in f32: 256 rows, 4096 columns, 256 (on ARM 384) deep; of one in f64: 128 by 128.
TEST(KernelInBlocks, GemmsInEveryDirection) {
  struct Shape {
    size_t rows, columns, depth;
  };
  for (const Shape& s : {Shape{777, 401, 17}, Shape{13, 12389, 11}, Shape{37, 41, 1601}, Shape{3, 16500, 9},
                         Shape{397, 523, 801}, Shape{13, 97, 601}, Shape{13, 193, 601}}) {
    Example example{
        "",
        {f64({1, static_cast<int64_t>(s.rows), static_cast<int64_t>(s.depth)}),
         f64({static_cast<int64_t>(s.columns), static_cast<int64_t>(s.depth)}), f64({static_cast<int64_t>(s.columns)})},
        {}};
    std::vector<Numbers> in = draw_inputs(ops::linear, example);
    Numbers y(s.rows * s.columns);
    for (size_t r = 0; r < s.rows; ++r)
      for (size_t c = 0; c < s.columns; ++c) {
        double sum = in[2][c];
        for (size_t k = 0; k < s.depth; ++k) sum += in[0][r * s.depth + k] * in[1][c * s.depth + k];
        y[r * s.columns + c] = sum;
      }
    SCOPED_TRACE(fmt::format("{} x {} x {}", s.rows, s.columns, s.depth));
    expect_outputs(ops::linear, example, in, {y});
  }
}

// Sums over rows: 16 rows a block, or a 64th of them where there are more than 1024; added up 512 columns at a time.
TEST(KernelInBlocks, SumsOverRowsInBothRegimes) {
  for (auto [rows, width] : {std::pair<size_t, size_t>{70, 1601}, {1100, 37}}) {
    auto r = static_cast<int64_t>(rows), w = static_cast<int64_t>(width);
    SCOPED_TRACE(rows);
    Example bias{"", {f64({1, r, w})}, {}};
    std::vector<Numbers> in = draw_inputs(ops::linear_bias_gradient, bias);
    Numbers dbias(width);
    for (size_t i = 0; i < in[0].size(); ++i) dbias[i % width] += in[0][i];
    expect_outputs(ops::linear_bias_gradient, bias, in, {dbias});

    Example norm{"", {f64({1, r, w}), f64({1, r, w}), f64({w}), f64({1, r})}, {}};
    in = draw_inputs(ops::rms_norm_backward, norm);
    Numbers dx(rows * width), dw(width);
    for (size_t row = 0; row < rows; ++row) {
      double scale = in[3][row], mean = 0;
      for (size_t j = 0; j < width; ++j)
        mean += in[0][row * width + j] * in[2][j] * in[1][row * width + j] / static_cast<double>(width);
      for (size_t j = 0; j < width; ++j) {
        size_t i = row * width + j;
        dx[i] = scale * (in[0][i] * in[2][j] - in[1][i] * scale * scale * mean);
        dw[j] += in[0][i] * in[1][i] * scale;
      }
    }
    expect_outputs(ops::rms_norm_backward, norm, in, {dx, dw});
  }
}

// Log-sum-exp of 1024 rows at a time, four chunks and a rest.
TEST(KernelInBlocks, LogSumExpOfManyChunks) {
  constexpr size_t kRows = 4 * 1024 + 77, kHidden = 5, kVocabulary = 67;
  Example example{"", {f64({1, kRows, kHidden}), f64({kVocabulary, kHidden})}, ops::head_lse.examples.front().attrs};
  std::vector<Numbers> in = draw_inputs(ops::head_lse, example);
  Numbers lse(kRows);
  for (size_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (size_t v = 0; v < kVocabulary; ++v) {
      double logit = 0;
      for (size_t h = 0; h < kHidden; ++h) logit += in[0][row * kHidden + h] * in[1][v * kHidden + h];
      sum += std::exp(logit);
    }
    lse[row] = std::log(sum);
  }
  expect_outputs(ops::head_lse, example, in, {lse});
}

// The loss of a rank that has a part of the vocabulary, where five ranks exchanged their log-sum-exps.
TEST(KernelInBlocks, LossWithLogSumExpsOfManyParts) {
  constexpr size_t kRows = 2100, kHidden = 4, kVocabulary = 33, kParts = 5;
  constexpr double kZ = 0.03;
  Example example{"",
                  {f64({1, kRows, kHidden}), f64({kVocabulary, kHidden}), i32({1, kRows}), f64({kParts, 1, kRows})},
                  {{"z_loss", kZ}, {"groups", int64_t{kParts}}},
                  kVocabulary};
  std::vector<Numbers> in = draw_inputs(ops::head_loss, example);
  double loss = 0;
  for (size_t row = 0; row < kRows; ++row) {
    double sum = 0, logit = 0;
    for (size_t part = 0; part < kParts; ++part) sum += std::exp(in[3][part * kRows + row]);
    for (size_t h = 0; h < kHidden; ++h)
      logit += in[0][row * kHidden + h] * in[1][static_cast<size_t>(in[2][row]) * kHidden + h];
    double lse = std::log(sum);
    loss += lse - logit + kZ * lse * lse;
  }
  expect_outputs(ops::head_loss, example, in, {{loss}});
}

// Models whose first position is not the table's first row (OPT: 2).
TEST(KernelInBlocks, PositionsFromAnOffset) {
  constexpr size_t kLength = 130, kWidth = 200, kPositions = 310, kOffset = 2;
  TensorType rows = f64({2, kLength, kWidth}), table = f64({kPositions, kWidth});
  Attrs attrs{{"offset", int64_t{kOffset}}};
  Example forward{"", {rows, table}, attrs}, backward{"", {rows, table}, attrs};
  std::vector<Numbers> in = draw_inputs(ops::position_embedding, forward);
  Numbers y = in[0], dw(kPositions * kWidth);
  for (size_t row = 0; row < 2 * kLength; ++row)
    for (size_t j = 0; j < kWidth; ++j) {
      size_t at = (row % kLength + kOffset) * kWidth + j;
      y[row * kWidth + j] += in[1][at];
      dw[at] += in[0][row * kWidth + j];
    }
  expect_outputs(ops::position_embedding, forward, in, {y});
  expect_outputs(ops::position_embedding_backward, backward, in, {dw});
}

// Key and value heads are copied row by row and their gradients added up 64 columns at a time.
TEST(KernelInBlocks, RepeatedHeadsOfWideRows) {
  constexpr int64_t kHeads = 4, kKvHeads = 2, kCopies = 4, kDim = 25, kWidth = 211;
  Attrs attrs{{"heads", kHeads}, {"kv_heads", kKvHeads}, {"head_dim", kDim}, {"copies", kCopies}};
  TensorType q = f64({kHeads * kDim, kWidth}), kv = f64({2 * kKvHeads * kDim, kWidth}),
             y = f64({(kHeads + 2 * kCopies) * kDim, kWidth});
  auto source = [&](int64_t row) -> int64_t {  // of kv, for a row of y behind the queries
    int64_t head = row / kDim, value = head / kCopies;
    return (value * kKvHeads + head % kCopies * kKvHeads / kCopies) * kDim + row % kDim;
  };
  Example forward{"", {q, kv}, attrs}, backward{"", {y, q, kv}, attrs};
  std::vector<Numbers> in = draw_inputs(ops::repeat_kv, forward), back = draw_inputs(ops::repeat_kv_backward, backward);
  Numbers packed = in[0], dq(back[0].begin(), back[0].begin() + q.shape.count()),
          dkv(static_cast<size_t>(kv.shape.count()));
  for (int64_t row = 0; row < 2 * kCopies * kDim; ++row)
    for (int64_t j = 0; j < kWidth; ++j) {
      auto at = static_cast<size_t>(source(row) * kWidth + j);
      packed.push_back(in[1][at]);
      dkv[at] += back[0][static_cast<size_t>((kHeads * kDim + row) * kWidth + j)];
    }
  expect_outputs(ops::repeat_kv, forward, in, {packed});
  expect_outputs(ops::repeat_kv_backward, backward, back, {dq, dkv});
}

}  // namespace
}  // namespace sextant
