// The dry run that proves a Program's memory and order: it accepts what is lowered, and finds each fault that is
// planted.
#include "ir/verify_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "models/model.h"
#include "passes/lower.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

struct Case {
  const char* name;
  Mesh mesh;
  int zero = 0;
  int microbatches = 1;
  RecomputeMode recompute = RecomputeMode::none;
  bool paired = false;
};

Program lowered(const Case& c) {
  ModelSpec spec{.architecture = "llama",
                 .layers = 3,
                 .hidden = 32,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 8,
                 .ffn = 64,
                 .vocab = 64,
                 .max_seq = 16,
                 .tied_head = true};
  LowerOptions options{.plan = {.recompute = c.recompute, .zero = c.zero, .microbatches = c.microbatches},
                       .train = Optimizer{}};
  if (c.paired) options.pipeline = make_schedule("combined-1f1b", {1, 1, c.microbatches});
  return lower(build_model(spec, {.batch = 2, .seq = 16, .parallel = {.zero = c.zero}}, c.mesh), cpu_target(1),
               options);
}

const Case kCases[] = {
    {"alone", {{{"dp", 1}}}},
    {"accumulated", {{{"dp", 1}}}, 0, 3},
    {"dp2", {{{"dp", 2}}}, 0, 2},
    {"dp2_many", {{{"dp", 2}}}, 0, 40},  // of which the dry run takes some
    {"zero1", {{{"dp", 2}}}, 1, 2},
    {"zero2", {{{"dp", 2}}}, 2, 2},
    {"zero3", {{{"dp", 2}}}, 3, 2, RecomputeMode::full},
    {"tp2", {{{"dp", 1}, {"tp", 2}}}, 0, 2, RecomputeMode::selective},
    {"paired", {{{"dp", 1}}}, 0, 3, RecomputeMode::none, true},
    {"paired_zero3", {{{"dp", 2}}}, 3, 3, RecomputeMode::full, true},
    {"paired_tp2", {{{"dp", 1}, {"tp", 2}}}, 0, 4, RecomputeMode::selective, true},
};

// Why the dry run refuses the Program; empty when it does not.
std::string refusal(const Program& program) {
  try {
    verify_memory(program, "test");
  } catch (const Bug& error) {
    return error.what();
  }
  return "";
}

struct Numbered {
  int32_t number;
  Op* op;
};

std::vector<Numbered> ops_of(Program& program) {
  std::vector<Numbered> ops;
  for (Region& region : program.regions)
    for (Op& op : region.ops) ops.push_back({static_cast<int32_t>(ops.size()), &op});
  return ops;
}

class Planted : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Programs, Planted, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Planted, NothingIsFoundWhereNothingIsWrong) {
  EXPECT_EQ(refusal(lowered(GetParam())), "");
}

// The buffers of weights, and of values that forward makes and backward reads: all of them live when forward ends.
std::vector<size_t> live_after_forward(const Program& program) {
  std::set<size_t> buffers;
  const Region &forward = program.regions[0], &backward = program.regions[1];
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferClass::weights) buffers.insert(i);
  for (const Op& op : forward.ops)
    for (ValueId id : op.outputs)
      for (const Op& reader : backward.ops)
        if (std::ranges::count(reader.inputs, id) > 0) buffers.insert(static_cast<size_t>(program[id].buffer));
  return {buffers.begin(), buffers.end()};
}

// Each is laid over each other, one at a time.
TEST_P(Planted, BuffersThatOverlapWhileBothLive) {
  const Program program = lowered(GetParam());
  std::vector<size_t> live = live_after_forward(program);
  ASSERT_GT(live.size(), 20u);
  for (size_t i = 0; i < live.size(); ++i) {
    size_t over = live[(i * 7 + 3) % live.size()];
    if (over == live[i]) continue;
    Program broken = program;
    broken.buffers[live[i]].offset = program.buffers[over].offset;
    EXPECT_NE(refusal(broken), "") << "buffer " << live[i] << " over " << over;
  }
}

TEST_P(Planted, AFreedValueThatIsRead) {
  Program program = lowered(GetParam());
  // A value made in forward and read in backward is put where forward keeps something it is done with.
  const Region &forward = program.regions.front(), &backward = program.regions[1];
  for (const Op& op : forward.ops)
    for (ValueId id : op.outputs) {
      Value& value = program.values[static_cast<size_t>(id)];
      bool read_later = std::any_of(backward.ops.begin(), backward.ops.end(), [&](const Op& other) {
        return std::find(other.inputs.begin(), other.inputs.end(), id) != other.inputs.end();
      });
      if (!read_later || value.buffer < 0 || &op == &forward.ops.back()) continue;
      for (const Op& later : backward.ops) {
        if (later.outputs.empty()) continue;
        const Value& over = program[later.outputs[0]];
        if (over.buffer < 0 || over.buffer == value.buffer || over.local_bytes().n == 0) continue;
        Program broken = program;
        // Its bytes are given to the first result of backward, before backward reads it.
        broken.buffers[static_cast<size_t>(over.buffer)].offset =
            program.buffers[static_cast<size_t>(value.buffer)].offset;
        EXPECT_NE(refusal(broken), "") << value.path << " under " << over.path;
        return;
      }
    }
  FAIL() << "no value lives from forward to backward";
}

TEST_P(Planted, AWaitThatIsMissing) {
  Program program = lowered(GetParam());
  int waits = 0;
  for (const Numbered& at : ops_of(program)) {
    if (at.op->waits.empty()) continue;
    std::vector<int32_t> kept = std::exchange(at.op->waits, {});
    std::string why = refusal(program);
    EXPECT_NE(why.find("a wait is missing"), std::string::npos) << at.op->path << ": " << why;
    at.op->waits = std::move(kept);
    ++waits;
  }
  bool pairs_along_tp = GetParam().paired && program.mesh.axis_count() > 1;
  EXPECT_EQ(waits > 0, program.mesh.size(0) > 1 || pairs_along_tp);  // along dp, or where two microbatches take turns
}

TEST_P(Planted, AWaitForTheWrongOp) {
  Program program = lowered(GetParam());
  std::vector<Numbered> ops = ops_of(program);
  for (const Numbered& at : ops) {
    if (at.op->waits.empty()) continue;
    std::vector<int32_t> kept = at.op->waits;
    // An op of the compute lane.
    at.op->waits = {at.number};
    EXPECT_NE(refusal(program).find("not on the comm lane"), std::string::npos) << at.op->path;
    // The first op of the comm lane, where the last is needed.
    auto first = std::find_if(ops.begin(), ops.end(), [](const Numbered& o) { return on_comm_lane(*o.op); });
    if (kept.back() != first->number) {
      at.op->waits = {first->number};
      EXPECT_NE(refusal(program), "") << at.op->path;
    }
    at.op->waits = kept;
  }
}

// A message's operand that is made again before it has gone.
TEST(PlantedInAPipeline, ASentValueThatIsOverwritten) {
  Case c{"pp2", {{{"pp", 2}, {"dp", 1}}}, 0, 4};
  ModelSpec spec{.architecture = "llama",
                 .layers = 2,
                 .hidden = 32,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 8,
                 .ffn = 64,
                 .vocab = 64,
                 .max_seq = 16};
  PipelineSchedule schedule = make_schedule("1f1b", {.ranks = 2, .chunks = 1, .microbatches = 4});
  LowerOptions options{.plan = {.microbatches = 4}, .train = Optimizer{}, .pipeline = schedule};
  std::vector<Program> programs = lower_all(build_model(spec, {.batch = 2, .seq = 16}, c.mesh), cpu_target(1), options);
  int planted = 0;
  for (Program& program : programs) {
    EXPECT_EQ(refusal(program), "");
    for (const Region& region : program.regions)
      for (size_t i = 0; i + 1 < region.ops.size(); ++i) {
        if (!region.ops[i].def->holds_inputs || region.ops[i + 1].outputs.empty()) continue;
        const Value &sent = program[region.ops[i].inputs[0]], &next = program[region.ops[i + 1].outputs[0]];
        if (next.buffer < 0 || next.buffer == sent.buffer) continue;
        Program broken = program;
        broken.buffers[static_cast<size_t>(next.buffer)].offset =
            program.buffers[static_cast<size_t>(sent.buffer)].offset;
        EXPECT_NE(refusal(broken), "") << sent.path << " under " << next.path;
        ++planted;
      }
  }
  EXPECT_GT(planted, 0);
}

}  // namespace
}  // namespace sextant
