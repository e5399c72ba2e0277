// A Graph or Program that was printed and read is printed as the same text again.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "checkout.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/ops.h"

namespace sextant {
namespace {

std::string seed(const char* name) {
  return read_file(std::filesystem::path(checkout::kSources) / "tests/fuzz/seeds" / name);
}

TEST(PrintAndParse, AGraphIsReadBackAsTheSameText) {
  const std::string text = print(parse_graph(seed("graph.txt"), find_op));
  EXPECT_TRUE(text.starts_with("graph llama"));
  EXPECT_EQ(print(parse_graph(text, find_op)), text);
}

TEST(PrintAndParse, AProgramIsReadBackAsTheSameText) {
  const std::string text = print(parse_program(seed("program.txt"), find_op));
  EXPECT_TRUE(text.starts_with("program "));
  EXPECT_EQ(print(parse_program(text, find_op)), text);
}

// The quantity that a value measures is part of the value and does not depend on its path.
TEST(PrintAndParse, WhatIsMeasuredIsReadBack) {
  Graph graph = parse_graph(seed("graph.txt"), find_op);
  Value& value = graph.values.back();
  value.kind = ValueKind::tally;
  value.counted = TallyOf::measured;
  value.measured = Measured{3, MeasuredTensor::fp8_gradient, MeasuredNumbers::largest};
  Graph again = parse_graph(print(graph), find_op);
  EXPECT_EQ(again.values.back().measured, value.measured);
  EXPECT_EQ(again.values.back().counted, TallyOf::measured);
  EXPECT_EQ(again.values.front().measured, std::nullopt);
  value.counted = TallyOf::small_gradients;
  value.measured.reset();
  value.space = MemorySpace::host;
  again = parse_graph(print(graph), find_op);
  EXPECT_EQ(again.values.back().counted, TallyOf::small_gradients);
  EXPECT_EQ(print(again), print(graph));
}

// A unit is written down with its actions.
TEST(PrintAndParse, ActionsThatRunAsOneAreReadBackSo) {
  Program program = parse_program(seed("program.txt"), find_op);
  ASSERT_GE(program.schedule.size(), 2u);
  program.schedule[0].with_next = true;
  Program again = parse_program(print(program), find_op);
  EXPECT_EQ(again.schedule, program.schedule);
  EXPECT_NE(hash_of(again), hash_of(parse_program(seed("program.txt"), find_op)));
}

}  // namespace
}  // namespace sextant
