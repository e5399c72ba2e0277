#include "view/memory_svg.h"

#include <gtest/gtest.h>

#include "view/xml_check.h"

namespace sextant {
namespace {

constexpr int64_t kGiB = 1 << 30;

// Weights all along; activations grow to the middle and shrink again.
MemoryPanel hill(const std::string& title, int ops, int64_t top) {
  MemoryPanel panel{.title = title, .points = {}};
  for (int i = 0; i < ops; ++i) {
    MemoryPoint point{.path = "op." + std::to_string(i), .phase = 2 * i < ops ? "forward" : "backward"};
    point.bytes[static_cast<size_t>(MemoryUse::weights)] = kGiB;
    point.bytes[static_cast<size_t>(MemoryUse::activations)] = top * (2 * i < ops ? i : ops - i) / ops;
    panel.points.push_back(std::move(point));
  }
  return panel;
}

TEST(MemorySvg, MarksTheFullestMoment) {
  std::string svg = memory_svg({.panels = {hill("stage 0", 100, 8 * kGiB)}, .limit = 10 * kGiB});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "fullest at op.50<"), 1u);
  EXPECT_EQ(count_of(svg, "5.00 GiB of 10.00 GiB"), 1u);
  EXPECT_EQ(count_of(svg, "the device has"), 1u);
  EXPECT_EQ(count_of(svg, "class=\"alarm\""), 0u);
  EXPECT_EQ(count_of(svg, ">gradients<"), 0u);  // there are none
}

TEST(MemorySvg, WhatIsAllocatedAndOutsideCounts) {
  MemoryPanel panel = hill("x", 100, 8 * kGiB);
  panel.outside = kGiB, panel.allocated = 7 * kGiB;
  std::string svg = memory_svg({.panels = {panel}, .limit = 6 * kGiB});
  EXPECT_EQ(count_of(svg, "class=\"alarm\" x="), 1u);
  EXPECT_EQ(count_of(svg, "7.00 GiB of 6.00 GiB"), 1u);
  EXPECT_EQ(count_of(svg, "op.50: 6.00 GiB"), 1u);  // the tooltip of the fullest moment
}

TEST(MemorySvg, ThinningKeepsTheFullestMoment) {
  MemoryPanel panel = hill("x", 100'000, kGiB);
  panel.points[77'777].bytes[0] = 100 * kGiB;
  std::string svg = memory_svg({.panels = {panel}});
  EXPECT_LT(svg.size(), 100'000u);
  EXPECT_EQ(count_of(svg, "fullest at op.77777<"), 1u);
  EXPECT_EQ(count_of(svg, "op.77777: 100."), 1u);
}

TEST(MemorySvg, OfManyStagesTheFirstTheLastAndTheLargestAreDrawn) {
  MemoryPicture picture;
  for (int i = 0; i < 40; ++i)
    picture.panels.push_back(hill("stage " + std::to_string(i), 10, i == 23 ? 9 * kGiB : kGiB));
  EXPECT_EQ(memory_panels(picture).size(), 8u);
  std::string svg = memory_svg(picture);
  for (const char* stage : {">stage 0<", ">stage 23<", ">stage 39<"}) EXPECT_EQ(count_of(svg, stage), 1u) << stage;
  EXPECT_EQ(count_of(svg, "8 of 40 stages"), 1u);
}

TEST(MemorySvg, HostileWordsAreWords) {
  MemoryPanel panel = hill(kHostile, 3, kGiB);
  for (MemoryPoint& point : panel.points) point.path = point.phase = kHostile;
  std::string svg = memory_svg({.title = kHostile, .panels = {panel}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<script"), 0u);
}

TEST(MemorySvg, NothingToDrawIsStillAPicture) {
  EXPECT_EQ(why_not_well_formed(memory_svg({})), "");
  EXPECT_EQ(why_not_well_formed(memory_svg({.panels = {{.title = "empty", .points = {}}}})), "");
}

}  // namespace
}  // namespace sextant
