// Events of a trace by op, all layers and microbatches together.
#include "base/trace_rows.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

TEST(TraceRows, TakeLayersAndMicrobatchesTogether) {
  EXPECT_EQ(path_of_all_layers("grad.layers.3.attn.qkv"), "grad.layers.*.attn.qkv");
  EXPECT_EQ(path_of_all_layers("layers.12.experts.0"), "layers.*.experts.*");
  EXPECT_EQ(path_of_all_layers("loss"), "loss");
  EXPECT_EQ(path_of_all_layers("a..7"), "a..*");
  EXPECT_EQ(path_of_all_layers(""), "");
  auto event = [](std::string path, std::string name, double start, double end, int rank) {
    Event made{std::move(path), std::move(name), start, end};
    made.rank = rank;
    return made;
  };
  Trace trace{event("layers.0.qkv", "linear", 0, 0.5, 0), event("layers.1.qkv", "linear", 0.5, 0.75, 0),
              event("layers.1.qkv", "cast", 1, 2, 0), event("layers.0.qkv", "linear", 0, 9, 1)};
  EXPECT_EQ(rows_by_op(trace, 0),
            (std::vector<TraceRow>{{"cast", "layers.*.qkv", 1, 1}, {"linear", "layers.*.qkv", 2, 0.75}}));
  EXPECT_EQ(rows_by_op(trace, 1), (std::vector<TraceRow>{{"linear", "layers.*.qkv", 1, 9}}));
  EXPECT_TRUE(rows_by_op(trace, 2).empty());
}

}  // namespace
}  // namespace sextant
