#include "view/scatter_svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "view/xml_check.h"

namespace sextant {
namespace {

TEST(ScatterSvg, HasAMarkPerRunWithItsError) {
  std::string svg = scatter_svg({{2, 2.2, "paper", "a run"}, {10, 9, "paper", "another"}, {3, 3, "blog", "third"}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "predicted 2.2 s (+10.0 %)"), 1u);
  EXPECT_EQ(count_of(svg, "predicted 9 s (-10.0 %)"), 1u);
  EXPECT_EQ(count_of(svg, "fill-opacity=\"0.8\"><title>"), 3u);
  EXPECT_EQ(count_of(svg, "class=\"band\" d="), 2u);
  EXPECT_LT(svg.find(">paper<"), svg.find(">blog<"));  // the larger source first
}

// Of an error beyond the picture's ends the mark lies on its edge, and the tooltip still tells it.
TEST(ScatterSvg, ErrorsHaveAPictureOfTheirOwn) {
  std::string svg = scatter_svg({{1, 5, "paper", "far"}, {1, 1, "paper", "exact"}}, {.of = ScatterOf::errors});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "predicted 5 s (+400.0 %)"), 1u);
  EXPECT_EQ(count_of(svg, "cy=\"48.0\""), 1u);        // the top
  EXPECT_EQ(count_of(svg, "cy=\"290.0\""), 1u);       // the middle
  EXPECT_EQ(count_of(svg, "id=\"value-plot\""), 0u);  // ids are unique in a page
  EXPECT_EQ(count_of(svg, ">paper<"), 0u);
}

TEST(ScatterSvg, WhatHasNoValueIsCountedNotDrawn) {
  std::string svg =
      scatter_svg({{1, 1, "a", ""}, {0, 1, "a", ""}, {-1, 1, "a", ""}, {1, NAN, "a", ""}, {INFINITY, 1, "a", ""}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "1 runs;"), 1u);
  EXPECT_EQ(count_of(svg, "4 without both values"), 1u);
}

TEST(ScatterSvg, StaysSmall) {
  std::vector<ScatterPoint> points;
  for (int i = 0; i < 100'000; ++i)
    points.push_back(
        {1 + i * 1e-3, 1 + (i * 7919 % 100'003) * 1e-3, "source " + std::to_string(i % 60), std::string(300, 'x')});
  std::string svg = scatter_svg(points);
  EXPECT_LT(svg.size(), 1'000'000u);
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "36 other sources"), 1u);
}

TEST(ScatterSvg, HostileWordsAreWords) {
  std::string svg =
      scatter_svg({{1, 1, kHostile, kHostile}}, {.title = kHostile, .quantity = kHostile, .unit = kHostile});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<script"), 0u);
}

TEST(ScatterSvg, NothingToDrawIsStillAPicture) {
  EXPECT_EQ(why_not_well_formed(scatter_svg({})), "");
}

}  // namespace
}  // namespace sextant
