#include "view/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sextant {
namespace {

Event event(const std::string& path, const std::string& name, double ms, double flops, int64_t bytes) {
  Event e{.path = path, .name = name, .start_s = 10, .end_s = 10 + ms / 1e3};
  e.flops = flops;
  e.bytes = bytes;
  return e;
}

const Trace kTrace{event("layers.0.attn.qkv", "linear", 2, 4e12, 1000000),
                   event("layers.11.attn.out", "linear", 1, 1e12, 0),
                   event("layers.0.norm", "rms_norm", 4, 0, 8000000000), event("head", "linear", 0.5, 0, 0)};

TEST(OpTable, AddsUpByKind) {
  std::vector<OpRow> rows = op_rows(kTrace, GroupBy::kind);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "rms_norm");
  EXPECT_EQ(rows[1].name, "linear");
  EXPECT_EQ(rows[1].count, 3);
  EXPECT_NEAR(rows[1].seconds, 3.5e-3, 1e-9);
  EXPECT_EQ(rows[1].flops, 5e12);
  EXPECT_EQ(rows[1].bytes, 1000000);
}

TEST(OpTable, LayersCountAsOnePart) {
  std::vector<OpRow> rows = op_rows(kTrace, GroupBy::part);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "layers.*.norm");
  EXPECT_EQ(rows[1].name, "layers.*.attn");
  EXPECT_EQ(rows[1].count, 2);
  EXPECT_EQ(rows[2].name, "head");
}

TEST(OpTable, TheTighterCeilingCounts) {
  OpRow row{.name = "x", .count = 1, .seconds = 2, .flops = 100, .bytes = 30};
  EXPECT_DOUBLE_EQ(share_of_ceiling(row, {.flops_per_s = 100, .bytes_per_s = 100}), 0.5);
  EXPECT_DOUBLE_EQ(share_of_ceiling(row, {.flops_per_s = 100, .bytes_per_s = 20}), 0.75);
  EXPECT_DOUBLE_EQ(share_of_ceiling(row, {}), 0);
}

TEST(OpTable, LinesUp) {
  std::string text = op_table(kTrace, {.flops_per_s = 4e15, .bytes_per_s = 4e12});
  EXPECT_NE(text.find("rms_norm        1       4.000   53.3%         -    2000.0       50.0%"), std::string::npos)
      << text;
  EXPECT_NE(text.find("linear          3       3.500   46.7%    1428.6       0.3       35.7%"), std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  // 5 TFLOP at 4 PFLOP/s and 8 GB at 4 TB/s, of 7.5 ms.
  EXPECT_NE(text.find("all ops: 7.50 ms; at the ceilings their flops or bytes alone would take 3.25 ms (43.3%)"),
            std::string::npos)
      << text;
}

TEST(OpTable, AnEmptyTraceHasNoRows) {
  EXPECT_TRUE(op_rows({}, GroupBy::kind).empty());
}

}  // namespace
}  // namespace sextant
