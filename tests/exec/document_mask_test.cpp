// Attention over sequences that hold several documents, against attention on each document alone.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "exec/kernel_runner.h"
#include "ir/graph.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 8;
constexpr int64_t kWidth = (kHeads + 2 * kKvHeads) * kDim, kYWidth = kHeads * kDim;
const Attrs kAttrs{{"heads", kHeads}, {"kv_heads", kKvHeads}, {"head_dim", kDim}};

// The lengths of the documents of each sequence: inside a block of queries, across blocks of keys, single positions.
const std::vector<std::vector<int64_t>> kSequences{{1, 70, 300, 5, 224}, {600}, {256, 128, 216}, {599, 1}};
constexpr int64_t kLength = 600;

struct Document {
  int64_t sequence, first, length;
};

std::vector<Document> documents() {
  std::vector<Document> all;
  for (size_t b = 0; b < kSequences.size(); ++b) {
    int64_t first = 0;
    for (int64_t length : kSequences[b]) {
      all.push_back({static_cast<int64_t>(b), first, length});
      first += length;
    }
  }
  return all;
}

Numbers begins_of_queries() {
  Numbers begins;
  for (const Document& document : documents())
    begins.insert(begins.end(), static_cast<size_t>(document.length), static_cast<double>(document.first));
  return begins;
}

// The document's part of [b, s, width], and of [b, heads, s].
Numbers rows(const Numbers& whole, int64_t width, const Document& d) {
  auto from = whole.begin() + (d.sequence * kLength + d.first) * width;
  return {from, from + d.length * width};
}

Numbers statistics(const Numbers& whole, const Document& d) {
  Numbers part;
  for (int64_t head = 0; head < kHeads; ++head) {
    auto from = whole.begin() + (d.sequence * kHeads + head) * kLength + d.first;
    part.insert(part.end(), from, from + d.length);
  }
  return part;
}

TensorTypes backward_types(int64_t batch, int64_t length) {
  return {f64({batch, length, kYWidth}), f64({batch, length, kWidth}), f64({batch, length, kYWidth}),
          f64({batch, kHeads, length})};
}

struct Case {
  DType real;
  double tolerance;
};

class DocumentMask : public testing::TestWithParam<Case> {
 protected:
  std::vector<Numbers> run(const OpDef& def, const TensorTypes& types, const std::vector<Numbers>& inputs) const {
    return run_kernel(
        {.def = def, .attrs = kAttrs, .types = types, .inputs = inputs, .real = GetParam().real, .threads = 2});
  }
  void expect_near(const Numbers& got, const Numbers& truth, const char* what, const Document& d) const {
    EXPECT_LT(relative_error(got, truth), GetParam().tolerance)
        << what << " of the document at " << d.first << " of sequence " << d.sequence;
  }

  const int64_t batch_ = static_cast<int64_t>(kSequences.size());
  const TensorType qkv_type_ = f64({batch_, kLength, kWidth}), begins_type_ = i32({batch_, kLength});
  const Numbers qkv_ = draw_inputs(ops::attention, {"", {qkv_type_}, kAttrs}, 5)[0];
  const Numbers dy_ = draw_inputs(ops::attention, {"", {f64({batch_, kLength, kYWidth})}, kAttrs}, 6)[0];
};

TEST_P(DocumentMask, IsAttentionOnEachDocumentAlone) {
  auto y = run(ops::attention, {qkv_type_, begins_type_}, {qkv_, begins_of_queries()});
  for (const Document& d : documents()) {
    auto alone = run(ops::attention, {f64({1, d.length, kWidth})}, {rows(qkv_, kWidth, d)});
    expect_near(rows(y[0], kYWidth, d), alone[0], "y", d);
    expect_near(statistics(y[1], d), alone[1], "lse", d);
  }
}

TEST_P(DocumentMask, HasTheGradientOfEachDocumentAlone) {
  auto y = run(ops::attention, {qkv_type_, begins_type_}, {qkv_, begins_of_queries()});
  TensorTypes types = backward_types(batch_, kLength);
  types.push_back(begins_type_);
  Numbers dqkv = run(ops::attention_backward, types, {dy_, qkv_, y[0], y[1], begins_of_queries()})[0];
  for (const Document& d : documents()) {
    Numbers qkv = rows(qkv_, kWidth, d);
    auto alone = run(ops::attention, {f64({1, d.length, kWidth})}, {qkv});
    auto truth =
        run(ops::attention_backward, backward_types(1, d.length), {rows(dy_, kYWidth, d), qkv, alone[0], alone[1]})[0];
    expect_near(rows(dqkv, kWidth, d), truth, "dqkv", d);
  }
}

// One document in each sequence is no mask at all.
TEST_P(DocumentMask, OfOneDocumentChangesNoBit) {
  Numbers zeros(static_cast<size_t>(batch_ * kLength), 0);
  auto plain = run(ops::attention, {qkv_type_}, {qkv_});
  EXPECT_EQ(run(ops::attention, {qkv_type_, begins_type_}, {qkv_, zeros}), plain);
  TensorTypes types = backward_types(batch_, kLength), masked = types;
  masked.push_back(begins_type_);
  EXPECT_EQ(run(ops::attention_backward, masked, {dy_, qkv_, plain[0], plain[1], zeros}),
            run(ops::attention_backward, types, {dy_, qkv_, plain[0], plain[1]}));
}

// A query whose document is said to begin after it sees itself, and nothing else.
TEST_P(DocumentMask, LeavesAQueryItself) {
  Numbers late(static_cast<size_t>(batch_ * kLength), static_cast<double>(std::numeric_limits<int32_t>::max()));
  auto y = run(ops::attention, {qkv_type_, begins_type_}, {qkv_, late});
  Numbers values;
  for (int64_t row = 0; row < batch_ * kLength; ++row)
    for (int64_t head = 0; head < kHeads; ++head) {
      auto value = qkv_.begin() + row * kWidth + kYWidth + (kKvHeads + head * kKvHeads / kHeads) * kDim;
      values.insert(values.end(), value, value + kDim);
    }
  EXPECT_LT(relative_error(y[0], values), GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Reals, DocumentMask, testing::Values(Case{DType::f64, 1e-12}, Case{DType::f32, 2e-6}),
                         [](const auto& info) { return std::string(name_of(info.param.real)); });

// Every step of the ring along s has where documents begin; that they stay apart is held by whole runs
// (tests/train/documents_test.cpp).
TEST(DocumentMaskOnAMesh, IsInEveryStepOfTheRing) {
  for (const OpDef* def : {&ops::attention, &ops::attention_backward}) {
    const Example& example = def->examples.back();
    Graph graph{.name = "split", .mesh = {{{"cp", 2}}}, .values = {}, .ops = {}};
    std::vector<ValueId> inputs;
    for (const TensorType& type : example.inputs)
      inputs.push_back(graph.add({.path = "in", .dtype = type.dtype, .shape = type.shape, .layout = {{sharded(1)}}}));
    Op op = make_op(graph, *def, inputs, example.attrs, "op");
    int steps = 0;
    for (const Op& local : def->localize(graph, op)) {
      if (local.def != &ops::attention_step && local.def != &ops::attention_step_backward) continue;
      ++steps;
      EXPECT_EQ(local.attrs.integer_or("documents", 0), 1) << def->name;
      EXPECT_EQ(std::ranges::count(local.inputs, inputs.back()), 1) << def->name;
    }
    EXPECT_EQ(steps, 2) << def->name;
  }
}

}  // namespace
}  // namespace sextant
