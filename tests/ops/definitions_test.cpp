// Every definition must provide these fields and functions, so that passes and generated tests can rely on them.
#include <gtest/gtest.h>
#include <algorithm>

#include <set>

#include "base/error.h"
#include "ir/signature.h"
#include "ops/ops.h"

namespace sextant {
namespace {

TEST(Definitions, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const OpDef* def : all_ops()) {
    EXPECT_TRUE(names.insert(def->name).second) << def->name;
    EXPECT_EQ(find_op(def->name), def);
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

TEST(Definitions, EveryExampleHasTypesCostAndRows) {
  for (const OpDef* def : all_ops()) {
    SCOPED_TRACE(std::string(def->name));
    EXPECT_FALSE(def->contract.empty());
    ASSERT_TRUE(def->cost);
    Signature signature = parse_signature(def->operands);
    if (signature.inputs.empty() || signature.outputs.empty()) continue;  // half a message: nothing to run alone
    ASSERT_FALSE(def->examples.empty());
    for (const Example& example : def->examples) {
      TensorTypes outputs = infer_types(*def, example.attrs, example.inputs);
      size_t always =
          static_cast<size_t>(std::count_if(signature.outputs.begin(), signature.outputs.end(),
                                            [](const Operand& o) { return o.count == Operand::Count::one; }));
      EXPECT_GE(outputs.size(), always);
      EXPECT_LE(outputs.size(), signature.outputs.size());
      Cost cost = def->cost(example.attrs, example.inputs, outputs);
      EXPECT_GT(cost.read.n + cost.written.n, 0);
      std::vector<int> in, out;
      for (const TensorType& t : example.inputs) in.push_back(t.shape.rank());
      for (const TensorType& t : outputs) out.push_back(t.shape.rank());
      for (const LayoutRow& row : layout_rows(*def, in, out)) {
        EXPECT_EQ(row.inputs.size(), in.size());
        EXPECT_EQ(row.outputs.size(), out.size());
      }
    }
  }
}

TEST(Definitions, LinearRowsAreTheTextbookOnes) {
  std::vector<LayoutRow> rows = layout_rows(ops::linear, {3, 2}, {3});
  auto has = [&](std::vector<AxisState> in, AxisState out) {
    for (const LayoutRow& row : rows)
      if (row.inputs == in && row.outputs[0] == out) return true;
    return false;
  };
  EXPECT_TRUE(has({sharded(0), kReplicated}, sharded(0)));  // data parallel
  EXPECT_TRUE(has({kReplicated, sharded(0)}, sharded(2)));  // column parallel
  EXPECT_TRUE(has({sharded(2), sharded(1)}, kPartial));     // row parallel
}

TEST(Definitions, WrongShapesAndAttrsAreBugsThatNameTheOp) {
  TensorTypes bad{{DType::f32, {2, 3, 4}}, {DType::f32, {6, 5}}};
  EXPECT_THROW(infer_types(ops::linear, {}, bad), Bug);
  TensorTypes good{{DType::f32, {2, 3, 4}}, {DType::f32, {6, 4}}};
  EXPECT_THROW(infer_types(ops::linear, {{"no_such_attr", 1}}, good), Bug);
  EXPECT_EQ(infer_types(ops::linear, {}, good)[0].shape, (GlobalShape{2, 3, 6}));
}

}  // namespace
}  // namespace sextant
