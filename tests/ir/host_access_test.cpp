// Feeds and fetches in the dry run of a Program: what the host writes must stand until it is read, and what it reads
// must still be what was made for it. Each fault that is planted here lies between two ops, where only the host looks.
#include "ir/host_access.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "ir/verify_memory.h"
#include "models/model.h"
#include "ops/ops.h"
#include "passes/lower.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

Program lowered_with(const char* schedule, int microbatches) {
  ModelSpec spec{.architecture = "llama",
                 .layers = 2,
                 .hidden = 32,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 8,
                 .ffn = 64,
                 .vocab = 64,
                 .max_seq = 16};
  LowerOptions options{.plan = {.microbatches = microbatches},
                       .train = Optimizer{},
                       .pipeline = make_schedule(schedule, {.ranks = 1, .chunks = 1, .microbatches = microbatches})};
  return lower(build_model(spec, {.batch = 2, .seq = 16}, single_rank_mesh()), cpu_target(1), options);
}

std::string complaint_about(const Program& program) {
  try {
    verify_memory(program, "test");
  } catch (const Bug& error) {
    return error.what();
  }
  return "";
}

Region& region_making(Program& program, ValueId id) {
  for (Region& region : program.regions)
    for (const Op& op : region.ops)
      if (std::ranges::count(op.outputs, id) > 0) return region;
  BUG("nothing makes %{}", id);
}

// Appends a copy of scalar `from` to the ops of the region that makes it; the copy, in a buffer behind all others.
Op& append_copy(Program& program, ValueId from) {
  Region& region = region_making(program, from);
  size_t number = 0;
  for (const Region& before : program.regions) {
    number += before.ops.size();
    if (&before == &region) break;
  }
  for (Region& each : program.regions)
    for (Op& op : each.ops)
      for (int32_t& awaited : op.waits) awaited += static_cast<size_t>(awaited) >= number ? 1 : 0;
  program.workspaces.insert(program.workspaces.begin() + static_cast<int64_t>(number), -1);

  Value copy = program[from];
  copy.id = static_cast<ValueId>(program.values.size());
  copy.path += ".copy";
  copy.kind = ValueKind::activation;
  copy.buffer = static_cast<int32_t>(program.buffers.size());
  program.buffers.push_back({.offset = program.arena_bytes, .bytes = 64});
  program.arena_bytes += 64;
  program.values.push_back(copy);
  region.ops.push_back({.def = &ops::duplicate, .inputs = {from}, .outputs = {copy.id}, .path = copy.path});
  return region.ops.back();
}

Buffer& buffer_of(Program& program, ValueId id) {
  return program.buffers[static_cast<size_t>(program[id].buffer)];
}

constexpr const char* kSchedulesTried[] = {"1f1b", "gpipe", "combined-1f1b"};

TEST(HostAccess, NothingIsFoundWhereNothingIsWrong) {
  for (const char* schedule : kSchedulesTried) {
    Program program = lowered_with(schedule, 4);
    EXPECT_EQ(complaint_about(program), "") << schedule;
    append_copy(program, program.at("loss").id);
    EXPECT_EQ(complaint_about(program), "") << schedule;
  }
}

// The first microbatch's alone: that of the last one still stands when the step ends.
TEST(HostAccess, AFetchThatIsOverwrittenBeforeTheHostReadsIt) {
  for (const char* schedule : kSchedulesTried) {
    Program program = lowered_with(schedule, 4);
    const ValueId loss = program.at("loss").id;
    Op& copy = append_copy(program, loss);
    copy.runs_for = RunsFor::first_microbatch;
    const int64_t alone = buffer_of(program, copy.outputs[0]).offset;
    EXPECT_EQ(complaint_about(program), "") << schedule;
    buffer_of(program, copy.outputs[0]).offset = buffer_of(program, loss).offset;
    EXPECT_NE(complaint_about(program).find("is overwritten before the host reads it"), std::string::npos) << schedule;

    // A fetch that only one microbatch makes is not the others'.
    buffer_of(program, copy.outputs[0]).offset = alone;
    program.values.back().kind = ValueKind::fetch;
    EXPECT_NE(complaint_about(program).find("of microbatch 0 for 1"), std::string::npos) << schedule;
  }
}

TEST(HostAccess, AFetchThatTheOtherLaneStillWrites) {
  Program program = lowered_with("1f1b", 4);
  Op& copy = append_copy(program, program.at("loss").id);
  copy.lane = Lane::comm;
  program.values.back().kind = ValueKind::fetch;
  EXPECT_NE(complaint_about(program).find("the host reads bytes that"), std::string::npos);
}

TEST(HostAccess, AFetchWithSeveralSlots) {
  Program program = lowered_with("gpipe", 4);
  buffer_of(program, program.at("loss").id).slots = 2;
  EXPECT_NE(complaint_about(program), "");
}

// Tokens are read forward and again backward: as many microbatches as are under way keep theirs.
TEST(HostAccess, AFeedThatALaterMicrobatchOverwrites) {
  for (const char* schedule : {"gpipe", "combined-1f1b"}) {
    Program program = lowered_with(schedule, 4);
    Buffer& tokens = buffer_of(program, program.at("tokens").id);
    ASSERT_GT(tokens.slots, 1) << schedule;
    --tokens.slots;
    EXPECT_NE(complaint_about(program).find("(tokens) of microbatch"), std::string::npos) << schedule;
  }
}

// It is written once, before the first microbatch, and read backward.
TEST(HostAccess, AFeedOfTheStepThatIsOverwritten) {
  Program program = lowered_with("1f1b", 4);
  const ValueId scale = program.at("loss_scale").id;
  int planted = 0;
  for (const Op& op : program.regions.front().ops) {
    const Value& made = program[op.outputs.at(0)];
    if (made.kind != ValueKind::activation || made.buffer < 0) continue;
    Program broken = program;
    buffer_of(broken, scale).offset = program.buffers[static_cast<size_t>(made.buffer)].offset;
    EXPECT_NE(complaint_about(broken).find("(loss_scale), whose bytes were overwritten"), std::string::npos) << op.path;
    ++planted;
  }
  EXPECT_GT(planted, 10);
}

TEST(HostAccess, IsWhereRegionsTouchTheValues) {
  const Program program = lowered_with("gpipe", 2);
  auto access_of = [&](const std::vector<HostAccess>& accesses, const char* path) {
    auto at = std::ranges::find(accesses, program.at(path).id, &HostAccess::value);
    EXPECT_NE(at, accesses.end()) << path;
    return at == accesses.end() ? HostAccess{} : *at;
  };
  EXPECT_EQ(access_of(microbatch_feeds(program), "tokens").region, RegionKind::forward);
  EXPECT_EQ(access_of(fetches(program), "loss").region, RegionKind::backward);
  EXPECT_EQ(access_of(fetches(program), "grad_norm").region, RegionKind::update);
  for (const HostAccess& feed : microbatch_feeds(program)) EXPECT_NE(program[feed.value].path, "loss_scale");
}

}  // namespace
}  // namespace sextant
