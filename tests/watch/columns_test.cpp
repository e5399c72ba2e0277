// Columns of a run, and the points that are drawn of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "run_files.h"
#include "watch/decimate.h"

namespace sextant {
namespace {

RunColumns columns_of(const std::string& lines) {
  RunColumns columns;
  for (size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != lines.npos; begin = end + 1)
    EXPECT_TRUE(columns.add_line(std::string_view(lines).substr(begin, end - begin)));
  return columns;
}

TEST(RunColumnsTest, KeepsDenseAndSparseFieldsByRow) {
  std::string lines;
  for (int step = 1; step <= 100; ++step) {
    std::string more = step % 20 == 0 ? fmt::format(",\"validation_loss\":{}", 2.0 * step) : "";
    lines += step == 50
                 ? fmt::format(R"({{"step":50,"tokens":5000,"step_s":0.5,"non_finite":{{"loss":"nan"}}}})") + "\n"
                 : metrics_line(step, step * 0.5, more);
  }
  RunColumns columns = columns_of(lines);
  ASSERT_EQ(columns.rows(), 100u);
  const MetricColumn* loss = columns.column("loss");
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(loss->size(), 100u);
  EXPECT_TRUE(std::isnan(loss->value(49)));
  EXPECT_EQ(loss->value(98), 99 * 0.5F);
  const MetricColumn* validation = columns.column("validation_loss");
  ASSERT_EQ(validation->size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(validation->row(i), 20 * (i + 1) - 1);
    EXPECT_EQ(validation->value(i), 40.0F * static_cast<float>(i + 1));
  }
  EXPECT_EQ(validation->first_at_or_after(20), 1u);
  EXPECT_EQ(columns.column("mfu"), nullptr);  // null in every line
  EXPECT_EQ(columns.x(XAxis::tokens, 9), 1000);
  EXPECT_EQ(columns.x(XAxis::seconds, 9), 5);
  EXPECT_EQ(*columns.last("loss"), 50.0F);
}

// A resumed run may have another batch, and lines that older versions wrote have none.
TEST(RunColumnsTest, FlopsAreSummedUpOverSteps) {
  RunColumns none = columns_of(metrics_line(1, 1));
  EXPECT_TRUE(none.has_axis(XAxis::seconds));
  EXPECT_FALSE(none.has_axis(XAxis::flops));
  std::string lines = metrics_line(1, 1);
  for (int step = 2; step <= 9; ++step) lines += metrics_line(step, 1, ",\"model_flops\":1e15");
  for (int step = 6; step <= 8; ++step) lines += metrics_line(step, 2, ",\"model_flops\":2e15");
  RunColumns columns = columns_of(lines);
  ASSERT_TRUE(columns.has_axis(XAxis::flops));
  const std::vector<double> expected{0, 1e15, 2e15, 3e15, 4e15, 6e15, 8e15, 10e15};
  ASSERT_EQ(columns.rows(), expected.size());
  for (size_t row = 0; row < expected.size(); ++row) EXPECT_EQ(columns.x(XAxis::flops, row), expected[row]) << row;
  EXPECT_EQ(columns.first_row_at_or_after(XAxis::flops, 5e15), 5u);
  EXPECT_EQ(columns.column("model_flops"), nullptr);
}

// Sums and means of numbers that a double holds, and no sum of theirs.
TEST(RunColumnsTest, PlacesAndMeansStayFinite) {
  std::string lines;
  for (int step = 1; step <= 3000; ++step)
    lines +=
        fmt::format(
            R"({{"step":{},"loss":1,"tokens":{},"step_s":1.7e308,"model_flops":1.7e308,"loads":[3e38,{}3e38,1e308]}})",
            step, step, step % 2 == 0 ? "" : "-") +
        "\n";
  RunColumns columns = columns_of(lines);
  for (XAxis axis : {XAxis::seconds, XAxis::flops})
    for (size_t row = 0; row < columns.rows(); row += 500)
      if (columns.has_axis(axis)) {
        EXPECT_TRUE(std::isfinite(columns.x(axis, row))) << row;
      }
  const ListColumn* list = columns.list("loads");
  for (size_t i = 0; i < list->size(); ++i)
    for (size_t e = 0; e < list->width(); ++e) ASSERT_TRUE(std::isfinite(list->value(i, e))) << i << " " << e;
  EXPECT_EQ(list->value(0, 0), 3e38F);
}

TEST(RunColumnsTest, AStepThatComesAgainTakesThePlaceOfAllThatFollow) {
  std::string lines;
  for (int step = 1; step <= 30; ++step) lines += metrics_line(step, 1, step % 10 == 0 ? ",\"validation_loss\":1" : "");
  for (int step = 11; step <= 15; ++step) lines += metrics_line(step, 2);
  RunColumns columns = columns_of(lines);
  EXPECT_EQ(columns.rows(), 15u);
  EXPECT_EQ(columns.column("loss")->value(9), 1);
  EXPECT_EQ(columns.column("loss")->value(10), 2);
  EXPECT_EQ(columns.column("validation_loss")->size(), 1u);
  EXPECT_EQ(columns.x(XAxis::seconds, 14), 7.5);
}

TEST(RunColumnsTest, LinesThatAreNoneAreLeftOut) {
  RunColumns columns;
  for (const char* line : {"", "{}", R"({"loss":1})", R"({"step":-1})", R"({"step":1.5})", R"({"step":1e300})",
                           R"({"step":"1"})", "garbage"})
    EXPECT_FALSE(columns.add_line(line)) << line;
  EXPECT_EQ(columns.rows(), 0u);
}

TEST(RunColumnsTest, ForeignFieldsAreShownAndBounded) {
  RunColumns columns;
  std::string line = "{\"step\":1";
  for (int i = 0; i < 2000; ++i) line += fmt::format(",\"field{}\":{}", i, i);
  ASSERT_TRUE(columns.add_line(line + "}"));
  EXPECT_EQ(*columns.last("field7"), 7);
  EXPECT_LE(columns.columns().size(), 256u);
}

// 20 runs of 100,000 steps are to take less than 200 MB.
TEST(RunColumnsTest, AHundredBytesARowAreEnough) {
  RunColumns columns;
  constexpr size_t kRows = 20'000;
  for (size_t step = 1; step <= kRows; ++step)
    columns.add_line(metrics_line(static_cast<int64_t>(step), 1,
                                  ",\"grad_norm\":1.5,\"lr\":0.001,\"tokens_per_s\":1000,\"arena_bytes\":123456,"
                                  "\"expert_load_peak\":[1,2,3,4,5,6,7,8]"));
  EXPECT_LT(columns.bytes(), kRows * 70);
}

TEST(RunColumnsTest, ListsAreMergedIntoMeans) {
  RunColumns columns;
  constexpr size_t kRows = 5000;
  for (size_t step = 1; step <= kRows; ++step)
    columns.add_line(metrics_line(static_cast<int64_t>(step), 1, fmt::format(",\"loads\":[{},1]", step)));
  const ListColumn* list = columns.list("loads");
  ASSERT_NE(list, nullptr);
  EXPECT_LE(list->size(), 2 * ListColumn::kListRows);
  EXPECT_GT(list->size(), ListColumn::kListRows / 2);
  for (size_t i = 0; i + 1 < list->size(); ++i) {
    size_t first = list->row(i), next = list->row(i + 1);
    // Steps first+1 … next.
    EXPECT_NEAR(list->value(i, 0), static_cast<double>(first + 1 + next) / 2, 1e-2);
    EXPECT_EQ(list->value(i, 1), 1);
  }
}

// A run that goes on with other ranks has lists of another length; what is not there is no number.
TEST(RunColumnsTest, ListsOfOtherLengthAreKept) {
  RunColumns columns;
  auto add = [&](int64_t step, const std::string& lists) {
    ASSERT_TRUE(columns.add_line(metrics_line(step, 1, lists)));
  };
  for (int step = 1; step <= 70; ++step)
    add(step, step == 1 ? R"(,"arena_bytes_by_rank":[8,9],"own":[1,2])" : R"(,"own":[1,2])");
  for (int step = 71; step <= 90; ++step)
    add(step, step == 71 ? R"(,"arena_bytes_by_rank":[3,4,5,6],"own":[1,2,3,null])" : R"(,"own":[1,2,3,4])");
  for (int step = 91; step <= 1100; ++step) add(step, step == 91 ? R"(,"arena_bytes_by_rank":[7])" : "");
  const ListColumn *memory = columns.list("arena_bytes_by_rank"), *own = columns.list("own");
  ASSERT_EQ(memory->size(), 3u);
  ASSERT_EQ(memory->width(), 4u);
  EXPECT_EQ(memory->value(0, 1), 9);
  EXPECT_TRUE(std::isnan(memory->value(0, 2)));
  EXPECT_EQ(memory->value(1, 3), 6);
  EXPECT_EQ(memory->value(2, 0), 7);
  EXPECT_TRUE(std::isnan(memory->value(2, 1)));
  EXPECT_EQ(memory->until_row(0), 70u);
  EXPECT_EQ(memory->until_row(1), 90u);
  EXPECT_GE(memory->until_row(2), columns.rows());  // it holds to the end
  ASSERT_EQ(own->size(), 90u);
  ASSERT_EQ(own->width(), 4u);
  EXPECT_TRUE(std::isnan(own->value(70, 3)));
  EXPECT_EQ(own->value(71, 3), 4);
  EXPECT_EQ(own->until_row(89), 90u);  // no list came after it
}

TEST(RunColumnsTest, ListsOfSomeStepsHoldUntilTheNext) {
  RunColumns columns;
  for (int step = 1; step <= 100; ++step)
    columns.add_line(metrics_line(step, 1, step % 10 == 0 && step != 50 && step != 60 ? ",\"rms\":[1,2]" : ""));
  const ListColumn* list = columns.list("rms");
  ASSERT_EQ(list->size(), 8u);
  EXPECT_EQ(list->until_row(0), list->row(1));
  EXPECT_EQ(list->until_row(3), list->row(3) + 10);  // the next one comes three times as late as usual
  EXPECT_EQ(list->until_row(7), list->row(7) + 10);
}

RunColumns random_run(size_t rows, uint64_t seed) {
  Random random(seed, "decimate");
  std::string lines;
  for (size_t i = 0; i < rows; ++i)
    lines += metrics_line(static_cast<int64_t>(i + 1), random.normal(i), random.below(i, 7) == 0 ? ",\"rare\":1" : "");
  return columns_of(lines);
}

TEST(Decimation, KeepsTheLeastAndTheGreatestOfEveryPart) {
  RunColumns run = random_run(5000, 1);
  const MetricColumn& loss = *run.column("loss");
  for (XAxis axis : {XAxis::step, XAxis::tokens, XAxis::seconds})
    for (size_t parts : {1, 7, 100}) {
      SeriesPoints points = decimated(run, loss, {.axis = axis, .parts = parts});
      EXPECT_LE(points.x.size(), 2 * parts + 1);
      EXPECT_EQ(points.x.back(), run.x(axis, run.rows() - 1));
      EXPECT_TRUE(std::ranges::is_sorted(points.x));
      double from = run.x(axis, 0), width = (run.x(axis, run.rows() - 1) - from) / static_cast<double>(parts);
      std::map<size_t, std::pair<float, float>> wanted, got;
      auto part_of = [&](double x) { return std::min(static_cast<size_t>((x - from) / width), parts - 1); };
      auto take = [&](auto& of, double x, float y) {
        auto [at, fresh] = of.try_emplace(part_of(x), y, y);
        at->second = {std::min(at->second.first, y), std::max(at->second.second, y)};
      };
      for (size_t i = 0; i < loss.size(); ++i) take(wanted, run.x(axis, loss.row(i)), loss.value(i));
      for (size_t i = 0; i < points.x.size(); ++i) take(got, points.x[i], points.y[i]);
      EXPECT_EQ(got, wanted) << parts;
    }
}

TEST(Decimation, OfARangeHasANeighbourBeyondEachEnd) {
  RunColumns run = random_run(1000, 2);
  SeriesPoints points =
      decimated(run, *run.column("loss"), {.axis = XAxis::step, .from = 100, .to = 120, .parts = 400});
  ASSERT_EQ(points.x.size(), 23u);
  EXPECT_EQ(points.x.front(), 99);
  EXPECT_EQ(points.x.back(), 121);
  for (size_t i = 0; i < points.x.size(); ++i) EXPECT_EQ(points.y[i], run.column("loss")->value(98 + i));
  EXPECT_TRUE(decimated(run, *run.column("loss"), {.from = 5000, .to = 6000}).x.size() <= 1);
}

TEST(Decimation, OfFewValuesIsAllOfThem) {
  RunColumns run = random_run(300, 3);
  const MetricColumn& rare = *run.column("rare");
  size_t there = 0;
  for (size_t i = 0; i < rare.size(); ++i) there += !std::isnan(rare.value(i));
  EXPECT_EQ(decimated(run, rare, {.parts = 400}).x.size(), there);
}

TEST(Decimation, SmoothsAllValuesBeforeItDecimates) {
  RunColumns run = random_run(500, 4);
  const MetricColumn& loss = *run.column("loss");
  SeriesPoints points = decimated_smooth(run, loss, {.parts = 400}, 0.9);
  ASSERT_EQ(points.y.size(), 500u);
  for (size_t last : {0u, 10u, 499u}) {
    double sum = 0, weights = 0;
    for (size_t i = 0; i <= last; ++i) {
      double weight = std::pow(0.9, static_cast<double>(last - i));
      sum += weight * loss.value(i);
      weights += weight;
    }
    EXPECT_NEAR(points.y[last], sum / weights, 1e-5);
  }
}

}  // namespace
}  // namespace sextant
