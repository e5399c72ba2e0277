// Every layout row of every op, forward and backward on small meshes against one rank. Generated from the definitions'
// examples: a new op or row is tested by being there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/op_on_mesh.h"

namespace sextant {
namespace {

// Ops that are a change of layout (or messages) have no rows; training on meshes and tests/mesh cover them. head_lse
// means something only beside the other parts: it has a test of its own below, and runs in every row of head_loss along
// v. Bins of squares are carried over as they grow: what they add up to is compared in tests/exec/exact_sum_test.cpp.
bool runs_alone(const OpDef& def) {
  bool bins = &def == &ops::exact_squares || &def == &ops::add_exact_squares;
  return def.layout_rule == LayoutRule::rows && &def != &ops::head_lse && !bins;
}

// The row of attention along s is a ring, which takes no begins of documents: localize refuses it.
bool is_refused(const OpDef& def, const Example& example, const LayoutRow& row) {
  bool attention = &def == &ops::attention || &def == &ops::sink_attention || &def == &ops::attention_backward;
  bool documents = std::any_of(example.inputs.begin(), example.inputs.end(),
                               [](const TensorType& type) { return type.dtype == DType::i32; });
  return attention && documents && row.outputs[0].shards(1);
}

std::vector<LayoutRow> rows_of(const OpDef& def, const Example& example) {
  std::vector<int> in, out;
  for (const TensorType& t : example.inputs) in.push_back(t.shape.rank());
  for (const TensorType& t : infer_types(def, example.attrs, example.inputs)) out.push_back(t.shape.rank());
  std::vector<LayoutRow> rows = layout_rows(def, in, out);
  std::erase_if(rows, [&](const LayoutRow& row) { return is_refused(def, example, row); });
  return rows;
}

// The dims that a row splits, of all operands.
struct SplitDim {
  char letter;
  AxisState state;
  std::vector<int64_t> extents;  // of its segments
};

std::vector<SplitDim> split_dims(const OpDef& def, const Example& example, const LayoutRow& row) {
  Signature signature = parse_signature(def.operands);
  TensorTypes outputs = infer_types(def, example.attrs, example.inputs);
  std::vector<SplitDim> dims;
  auto add = [&](const Operand& operand, const TensorType& type, AxisState state) {
    if (state.kind != StateKind::sharded) return;
    Segments segments = packed_segments(operand, type, example.attrs);
    dims.push_back({operand.letters == "*" ? '*' : operand.letters[static_cast<size_t>(state.dim)], state,
                    segments.dim == state.dim ? segments.extents : std::vector<int64_t>{type.shape[state.dim]}});
  };
  std::vector<const Operand*> operands = signature.operands_of(ranks_of(example.inputs));
  for (size_t i = 0; i < row.inputs.size(); ++i) add(*operands[i], example.inputs[i], row.inputs[i]);
  for (size_t i = 0; i < row.outputs.size(); ++i) add(signature.outputs[i], outputs[i], row.outputs[i]);
  return dims;
}

// Heads are split whole. What may be padded are vocabularies and what the optimizer shards, whatever its shape.
bool can_split(const OpDef& def, const Example& example, const LayoutRow& row, int ranks) {
  for (const SplitDim& dim : split_dims(def, example, row)) {
    if (dim.letter == 'v' || dim.letter == '*') continue;
    if (dim.state.order == ShardOrder::blocks) {
      if (dim.extents.size() % static_cast<size_t>(ranks) != 0) return false;
      continue;
    }
    bool heads = (dim.letter == 'e' || dim.letter == 'a') && example.attrs.has("head_dim");
    int64_t unit = heads ? example.attrs.integer("head_dim") : 1;
    int64_t values = heads ? example.attrs.integer_or("value_dim", unit) : 1;
    int64_t pieces = dim.state.order == ShardOrder::zigzag ? 2 * ranks : ranks;
    // Values stand behind queries and keys, and alone in an output.
    for (size_t i = 0; i < dim.extents.size(); ++i)
      if (dim.extents[i] % ((i + 1 == dim.extents.size() ? values : unit) * pieces) != 0) return false;
  }
  return true;
}

// Zigzag order is for sequences of tokens, or of their slots; stripes are for those of tokens.
bool splits_only(std::string_view letters, const OpDef& def, const Example& example, const LayoutRow& row) {
  std::vector<SplitDim> dims = split_dims(def, example, row);
  return !dims.empty() && std::all_of(dims.begin(), dims.end(), [&](const SplitDim& d) {
    return letters.find(d.letter) != std::string_view::npos;
  });
}

std::vector<RowCase> cases_of(const OpDef& def) {
  std::vector<RowCase> cases;
  for (const Example& example : def.examples) {
    for (const LayoutRow& row : rows_of(def, example)) {
      std::vector<LayoutRow> orders{row};
      if (splits_only("sn", def, example, row)) orders.push_back(in_order(row, ShardOrder::zigzag));
      if (splits_only("s", def, example, row)) orders.push_back(in_order(row, ShardOrder::striped));
      for (const LayoutRow& ordered : orders)
        for (int ranks : {2, 3, 4})
          if (can_split(def, example, ordered, ranks)) cases.push_back({def, example, ordered, ranks});
    }
  }
  return cases;
}

class LayoutRows : public testing::TestWithParam<const OpDef*> {};

TEST_P(LayoutRows, AgreeWithOneRank) {
  const OpDef& def = *GetParam();
  std::set<std::string> ran;
  for (const RowCase& row_case : cases_of(def)) {
    ran.insert(row_text(row_case.row));
    for (const std::string& difference : differences(row_case)) ADD_FAILURE() << difference;
  }
  for (const Example& example : def.examples)
    for (const LayoutRow& row : rows_of(def, example))
      EXPECT_TRUE(ran.contains(row_text(row)))
          << def.name << ": no example has dims that can be split as " << row_text(row);
}

std::vector<const OpDef*> ops_with_rows() {
  std::vector<const OpDef*> ops;
  for (const OpDef* def : all_ops())
    if (runs_alone(*def)) ops.push_back(def);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, LayoutRows, testing::ValuesIn(ops_with_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

// The parts of head_lse, one per rank, make up the log-sum-exp of the whole vocabulary.
TEST(LayoutRowsOfParts, HeadLsePartsMakeUpTheWhole) {
  const Example& whole = ops::head_lse.examples[0];
  std::vector<double> expected =
      run_on_mesh({ops::head_lse, whole, rows_of(ops::head_lse, whole)[0], 1}, Direction::forward).tensors.at("out0");
  for (int ranks : {2, 3, 4}) {
    Example split = whole;
    split.attrs.set("groups", int64_t{ranks});
    WholeResults got = run_on_mesh({ops::head_lse, split, rows_of(ops::head_lse, split)[0], ranks}, Direction::forward);
    EXPECT_TRUE(got.complaints.empty());
    const std::vector<double>& parts = got.tensors.at("out0");
    ASSERT_EQ(parts.size(), expected.size() * static_cast<size_t>(ranks));
    for (size_t i = 0; i < expected.size(); ++i) {
      double sum = 0;
      for (size_t part = 0; part < static_cast<size_t>(ranks); ++part)
        sum += std::exp(parts[part * expected.size() + i]);
      EXPECT_NEAR(std::log(sum), expected[i], 1e-10 * std::abs(expected[i])) << ranks << " ranks, row " << i;
    }
  }
}

// The checker can fail: rows that are wrong in one state, by which a reduction is lost or made too often.
struct BrokenRow {
  const char* what;
  const OpDef& def;
  size_t example;
  LayoutRow row;
  std::string blamed;  // the one tensor that must come out wrong
};

TEST(BrokenRows, AreFound) {
  const BrokenRow broken[] = {
      {"the gradient of a weight that ranks use on different data is not summed",
       ops::linear,
       0,
       {{sharded(0), kInvariant}, {sharded(0)}},
       "grad.in1"},
      {"the gradient of an input that ranks use for different outputs is not summed",
       ops::linear,
       0,
       {{kInvariant, sharded(0)}, {sharded(2)}},
       "grad.in0"},
      {"a bias is added once per rank", ops::linear, 1, {{sharded(2), sharded(1), kReplicated}, {kPartial}}, "out0"},
      {"rows of a table that another rank holds are not added",
       ops::embedding,
       0,
       {{kReplicated, sharded(0)}, {kReplicated}},
       "out0"},
      {"the mean of a row is taken over a part of it",
       ops::rms_norm,
       0,
       {{sharded(2), sharded(0)}, {sharded(2), kReplicated}},
       "out0"},
  };
  for (const BrokenRow& b : broken) {
    SCOPED_TRACE(b.what);
    std::string all;
    for (const std::string& line : differences({b.def, b.def.examples[b.example], b.row, 2})) all += line + "\n";
    EXPECT_NE(all.find(b.blamed), std::string::npos) << all;
    // A lost reduction in backward does not show in forward.
    EXPECT_EQ(all.find("out0") != std::string::npos, b.blamed == "out0") << all;
  }
}

}  // namespace
}  // namespace sextant
