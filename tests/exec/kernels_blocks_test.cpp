// Kernels cut their work into blocks by shape. Here every kernel gets at least three blocks and a remainder: every
// example of every op, grown along its first dim until streaming kernels have many tasks, against runs of the example's
// own size put together as the definition's row says; and what only grows along other dims (depth and width of
// GEMMs, columns of sums, chunks of logits) against naive formulas in double, in both precisions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/kernel_runner.h"
#include "ir/signature.h"
#include "ops/ops.h"
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

// Outputs of such a row are put together by appending.
bool keeps_first_dim(const LayoutRow& row) {
  return std::ranges::none_of(
      row.outputs, [](const AxisState& state) { return state.kind == StateKind::sharded && state.dim != 0; });
}

// The row that cuts dim 0 of the first input.
LayoutRow row_along_first_dim(const OpDef& def, const Example& example) {
  TensorTypes outputs = infer_types(def, example.attrs, example.inputs);
  std::vector<int> in, out;
  for (const TensorType& type : example.inputs) in.push_back(type.shape.rank());
  for (const TensorType& type : outputs) out.push_back(type.shape.rank());
  for (const LayoutRow& row : layout_rows(def, in, out))
    if (!row.inputs.empty() && is_cut(row.inputs[0]) && keeps_first_dim(row)) return row;
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
      if (row.inputs.empty() || example.attrs.has("packed")) continue;  // packed: attrs count the rows
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
    // Random numbers are drawn by position: each piece begins so many rows after the one before.
    if (int64_t rows = grown.piece.inputs[0].shape[0]; part.attrs.has("first_row"))
      part.attrs.set("first_row", part.attrs.integer("first_row") + at * rows);
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
      } else if (grown.row.outputs[o].kind == StateKind::partial_max) {
        expected[o].resize(out[o].size());
        for (size_t i = 0; i < out[o].size(); ++i) expected[o][i] = std::max(expected[o][i], out[o][i]);
      } else {
        expected[o] = out[o];
      }
    }
  }
  // Bins of squares are carried over as they grow: what they add up to counts.
  if (grown.def == &ops::exact_squares)
    for (std::vector<Numbers>* out : {&whole, &single, &expected})
      out->front() = {std::accumulate(out->front().begin(), out->front().end(), 0.0)};
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

// A matrix of two packed ones, of several tasks of rows and of columns each.
struct PackedMatrix {
  static constexpr int64_t kRows = 801, kWidth = 331;
  const std::vector<int64_t> packed{300, 501};
  const Numbers p = drawn(0, kRows*kWidth), g = drawn(1, kRows*kWidth), r = positive(2, kRows),
                c = positive(3, 2 * kWidth);

  static Numbers drawn(uint64_t stream, int64_t count) {
    Random random(5, "packed", stream);
    Numbers x(static_cast<size_t>(count));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.normal(i));
    return x;
  }
  static Numbers positive(uint64_t stream, int64_t count) {
    Numbers x = drawn(stream, count);
    for (double& v : x) v = std::abs(v) + 0.01;
    return x;
  }
  static size_t at(int64_t row, int64_t column) { return static_cast<size_t>(row * kWidth + column); }
  static size_t of(int64_t row) { return row < 300 ? 0 : 1; }
};

TEST(KernelInBlocks, AdafactorsSumsOfPackedMatrices) {
  PackedMatrix m;
  const double scale = 0.5;
  Numbers rows(PackedMatrix::kRows), columns(2 * PackedMatrix::kWidth), squares(2);
  for (int64_t row = 0; row < m.kRows; ++row)
    for (int64_t i = 0; i < m.kWidth; ++i) {
      double x = scale * m.g[m.at(row, i)];
      rows[static_cast<size_t>(row)] += x * x;
      columns[m.of(row) * m.kWidth + static_cast<size_t>(i)] += x * x;
      squares[m.of(row)] += m.p[m.at(row, i)] * m.p[m.at(row, i)];
    }
  Example example{"", {f64({m.kRows, m.kWidth}), f64({m.kRows, m.kWidth}), f64({})}, {{"packed", m.packed}}};
  expect_outputs(ops::adafactor_sums, example, {m.p, m.g, {scale}}, {rows, columns, squares});
}

TEST(KernelInBlocks, AdafactorsDirectionOfPackedMatrices) {
  PackedMatrix m;
  const double scale = 0.5, eps = 1e-7;
  Numbers means{0.7, 1.9}, u(m.g.size()), squares(2);
  for (int64_t row = 0; row < m.kRows; ++row)
    for (int64_t i = 0; i < m.kWidth; ++i) {
      double variance =
          m.r[static_cast<size_t>(row)] * m.c[m.of(row) * m.kWidth + static_cast<size_t>(i)] / means[m.of(row)];
      double& x = u[m.at(row, i)];
      x = scale * m.g[m.at(row, i)] / std::sqrt(variance);
      squares[m.of(row)] += x * x;
    }
  Example example{"",
                  {f64({m.kRows, m.kWidth}), f64({m.kRows}), f64({2, m.kWidth}), f64({2}), f64({})},
                  {{"packed", m.packed}, {"eps", eps}}};
  expect_outputs(ops::adafactor_direction, example, {m.g, m.r, m.c, means, {scale}}, {u, squares});
}

TEST(KernelInBlocks, AdafactorsStepOfPackedMatrices) {
  PackedMatrix m;
  const double lr = 0.25, step = 9, decay = 0.125;
  Numbers update_squares{4e6, 1e3}, weight_squares{2e5, 1e-9}, p = m.p;
  for (int64_t row = 0; row < m.kRows; ++row) {
    double elements = static_cast<double>(m.packed[m.of(row)] * m.kWidth);
    double size = std::max(1e-3, std::sqrt(weight_squares[m.of(row)] / elements));
    double length =
        std::min(lr, 1 / std::sqrt(step)) * size / std::max(1.0, std::sqrt(update_squares[m.of(row)] / elements) / 2);
    for (int64_t i = 0; i < m.kWidth; ++i) {
      double& x = p[m.at(row, i)];
      x = (1 - lr * decay) * x - length * m.g[m.at(row, i)];
    }
  }
  Example example{"",
                  {f64({m.kRows, m.kWidth}), f64({m.kRows, m.kWidth}), f64({2}), f64({2}), f64({}), i32({}), f64({})},
                  {{"packed", m.packed},
                   {"row_elements", PackedMatrix::kWidth},
                   {"update_clip", 2.0},
                   {"min_rms", 1e-3},
                   {"weight_decay", decay}}};
  expect_outputs(ops::adafactor_step, example, {m.p, m.g, update_squares, weight_squares, {lr}, {step}, {1}}, {p});
}

struct Dense {
  int64_t rows, columns;
  Numbers x;

  double operator()(int64_t i, int64_t j) const { return x[static_cast<size_t>(i * columns + j)]; }
  Dense transposed() const {
    Dense out{columns, rows, Numbers(x.size())};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) out.x[static_cast<size_t>(j * rows + i)] = (*this)(i, j);
    return out;
  }
  Dense operator*(const Dense& b) const {
    Dense out{rows, b.columns, Numbers(static_cast<size_t>(rows * b.columns))};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < columns; ++k)
        for (int64_t j = 0; j < b.columns; ++j)
          out.x[static_cast<size_t>(i * b.columns + j)] += (*this)(i, k) * b(k, j);
    return out;
  }
};

// The iteration as Muon's authors write it, on the rows of a wide matrix and the columns of a tall one.
Numbers orthogonal(const Dense& given, int64_t steps) {
  bool tall = given.rows > given.columns;
  Dense x = tall ? given.transposed() : given;
  double square = 0;
  for (double v : x.x) square += v * v;
  for (double& v : x.x) v /= std::sqrt(square);
  for (int64_t step = 0; step < steps; ++step) {
    Dense gram = x * x.transposed(), polynomial = gram * gram;
    for (size_t i = 0; i < gram.x.size(); ++i) polynomial.x[i] = -4.7750 * gram.x[i] + 2.0315 * polynomial.x[i];
    Dense next = polynomial * x;
    for (size_t i = 0; i < x.x.size(); ++i) next.x[i] += 3.4445 * x.x[i];
    x = next;
  }
  x = tall ? x.transposed() : x;
  double factor = std::sqrt(std::max(1.0, static_cast<double>(given.rows) / static_cast<double>(given.columns)));
  for (double& v : x.x) v *= factor;
  return x.x;
}

TEST(KernelInBlocks, OrthogonalMatrices) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{300, 40}, {40, 300}, {131, 131}}) {
    Example example{"",
                    {f64({rows, columns})},
                    {{"packed", std::vector<int64_t>{rows}}, {"steps", 5}, {"adjust", std::string("original")}}};
    Numbers x = PackedMatrix::drawn(9, rows * columns);
    expect_outputs(ops::orthogonalize, example, {x}, {orthogonal({rows, columns, x}, 5)});
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
