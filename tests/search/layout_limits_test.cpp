// Limits of a search: they hold, combine, and a limit that makes no sense is refused with the available values.
#include "search/layout_limits.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cost/machine_file.h"
#include "models/presets.h"
#include "search/search.h"

namespace sextant {
namespace {

TEST(LayoutLimits, HoldTogether) {
  LayoutLimits limits({"zero=0,1", "schedule=1f1b", "sequence_parallel=true"}, "--only");
  EXPECT_TRUE(limits.allow({.mesh = {.zero = 1}}));
  EXPECT_FALSE(limits.allow({.mesh = {.zero = 2}}));
  EXPECT_FALSE(limits.allow({.mesh = {.pp = 2}, .schedule = ScheduleKind::zbv}));
  EXPECT_TRUE(limits.allow({.mesh = {.pp = 1}, .schedule = ScheduleKind::zbv}));  // without stages no schedule is meant
  EXPECT_FALSE(limits.allow({.mesh = {.tp = 2}}));
  EXPECT_TRUE(limits.allow({.mesh = {.tp = 2, .sequence_parallel = true}}));
  EXPECT_EQ(limits.most("zero"), 1);
  EXPECT_FALSE(limits.most("tp"));
  EXPECT_EQ(limits.text(), "schedule=1f1b sequence_parallel=true zero=0,1");
  EXPECT_TRUE(LayoutLimits().allow({.mesh = {.zero = 3}}));
}

TEST(LayoutLimits, WhatMakesNoSenseIsRefused) {
  for (const char* bad :
       {"colour=1", "zero", "zero=", "zero=one", "tp=1,,2", "tp=-1", "schedule=2f2b", "recompute=most"})
    EXPECT_THROW(LayoutLimits({bad}, "--only"), UserError) << bad;
}

TEST(LayoutLimits, ASearchKeepsToThem) {
  Machine machine = load_machine("h100-sxm");
  ModelSpec spec = find_preset("llama3.2-1b")->spec;
  SoftwareProfile profile = own_profile();
  RunConfig run;
  run.batch = {.sequences = 64, .microbatch = 1, .seq = 2048};
  SearchRequest request{.run = run,
                        .spec = spec,
                        .machine = machine,
                        .profile = profile,
                        .devices = 16,
                        .limits = LayoutLimits({"tp=16", "zero=0,1", "recompute=none"}, "--only")};
  SearchResult found = search_layouts(request);
  ASSERT_FALSE(found.best.empty());
  for (const Candidate& candidate : found.best)
    EXPECT_EQ(candidate.choice.mesh.tp, 16);  // across nodes, as it was asked for by number
  request.limits = LayoutLimits({"dp=5"}, "--only");
  try {
    search_layouts(request);
    FAIL() << "no layout of 16 devices has dp 5";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--only"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sextant
