// Ops with their values below them, as `explain` prints them.
#include "view/listing.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ops/ops.h"

namespace sextant {
namespace {

constexpr const char* kSmallGraph = R"(graph small
mesh pp=1 dp=1 cp=1 tp=2
value %0 activation -1 f32[4, 64] tp:R zeros x
value %1 parameter -1 f32[128, 64] tp:S(0) normal(0.02) layers.0.up.weight
value %2 activation -1 f32[4, 128] tp:S(1) zeros layers.0.up
value %3 activation -1 f32[4, 128] tp:S(1) zeros layers.1.act
op %2 = linear(%0, %1) {} forward 0 0 compute every -1 layers.0.up
op %3 = scale(%2) {factor=0.5} forward 0 1 compute every -1 layers.1.act
)";

TEST(Listing, ValuesStandBelowTheirOps) {
  Graph graph = parse_graph(kSmallGraph, find_op);
  EXPECT_EQ(listing(graph, {}),
            "graph small, mesh pp=1 dp=1 cp=1 tp=2: 2 ops, 4 values\n"
            "\n"
            "op 0  linear  layers.0.up  (forward, stage 0, layer 0)\n"
            "  in   %0  f32[4, 64]    tp:R     activation  x\n"
            "  in   %1  f32[128, 64]  tp:S(0)  parameter   layers.0.up.weight\n"
            "  out  %2  f32[4, 128]   tp:S(1)  activation  layers.0.up\n"
            "op 1  scale {factor=0.5}  layers.1.act  (forward, stage 0, layer 1)\n"
            "  in   %2  f32[4, 128]  tp:S(1)  activation  layers.0.up\n"
            "  out  %3  f32[4, 128]  tp:S(1)  activation  layers.1.act\n");
}

TEST(Listing, FiltersByLayerAndOp) {
  Graph graph = parse_graph(kSmallGraph, find_op);
  EXPECT_EQ(listing(graph, {.layer = 1}),
            "graph small, mesh pp=1 dp=1 cp=1 tp=2: 1 of 2 ops (layer 1)\n"
            "\n"
            "op 1  scale {factor=0.5}  layers.1.act  (forward, stage 0, layer 1)\n"
            "  in   %2  f32[4, 128]  tp:S(1)  activation  layers.0.up\n"
            "  out  %3  f32[4, 128]  tp:S(1)  activation  layers.1.act\n");
  EXPECT_EQ(listed_ops(graph, {.layer = {}, .kind = &ops::linear}).size(), 1u);
  EXPECT_TRUE(listed_ops(graph, {.layer = 1, .kind = &ops::linear}).empty());
}

TEST(Listing, OfAProgramHasPlacesAndWaits) {
  Program program = parse_program(R"(program 0 1 small
mesh pp=1 dp=2 cp=1 tp=1
arena 512 1536
buffer 0 weights 0 512 1
buffer 1 activations 512 256 2
value %0 parameter -1 f32[2, 64] dp:R ones w
  local %0 [2, 64] 0
value %1 activation -1 f32[2, 64] I zeros y
  local %1 [1, 64] 1
region forward 0
op %1 = scale(%0) {factor=2.0} forward 0 -1 comm last -1 y
op %1 = scale(%1) {factor=3.0} forward 0 -1 compute every -1 y
  waits 0
action forward 0 0
)",
                                  find_op);
  EXPECT_EQ(listing(program, {}),
            "program small of pipeline rank 0, mesh pp=1 dp=2 cp=1 tp=1: 2 ops, 2 values\n"
            "memory 1,536 bytes, of which 512 keep their content from step to step\n"
            "\n"
            "region forward of chunk 0\n"
            "op 0  scale {factor=2.0}  y  (forward, stage 0, comm lane, last microbatch only)\n"
            "  in   %0  f32[2, 64]  dp:R  parameter   w  here [2, 64]  weights at 0, 512 bytes\n"
            "  out  %1  f32[2, 64]  I     activation  y  here [1, 64]  activations at 512, 512 bytes\n"
            "op 1  scale {factor=3.0}  y  (forward, stage 0, waits for op 0)\n"
            "  in   %1  f32[2, 64]  I  activation  y  here [1, 64]  activations at 512, 512 bytes\n"
            "  out  %1  f32[2, 64]  I  activation  y  here [1, 64]  activations at 512, 512 bytes\n"
            "\n"
            "schedule (region, chunk, microbatch)\n"
            "  forward 0 0\n");
}

// Ops keep the numbers that others wait for, whatever is left out.
TEST(Listing, NumbersDoNotDependOnTheFilter) {
  Program program = parse_program(R"(program 0 1 small
mesh pp=1 dp=1 cp=1 tp=1
arena 0 0
value %0 activation -1 f32[2, 64] I zeros x
  local %0 [2, 64] -1
value %1 activation -1 f32[2, 64] I zeros y
  local %1 [2, 64] -1
region forward 0
op %1 = scale(%0) {factor=2.0} forward 0 0 compute every -1 a
op %1 = scale(%0) {factor=2.0} forward 0 1 compute every -1 b
)",
                                  find_op);
  std::vector<ListedOp> ops = listed_ops(program, {.layer = 1});
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].number, 1);
  EXPECT_EQ(ops[0].path, "b");
}

}  // namespace
}  // namespace sextant
