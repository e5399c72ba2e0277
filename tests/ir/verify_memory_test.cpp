// The dry run that proves a Program's memory and order: it accepts what is lowered, and finds each fault that is
// planted.
#include "ir/verify_memory.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "exec/cpu/cpu_executor.h"
#include "ir/alias.h"
#include "ir/lane.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {
namespace {

struct Case {
  const char* name;
  Mesh mesh;
  int zero = 0;
  int microbatches = 1;
  RecomputeMode recompute = RecomputeMode::none;
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
                       .train = AdamW{}};
  return lower(build_model(spec, {.batch = 2, .seq = 16, .parallel = {.zero = c.zero}}, c.mesh), cpu_target(1),
               options);
}

const Case kCases[] = {
    {"alone", {{{"dp", 1}}}},
    {"accumulated", {{{"dp", 1}}}, 0, 3},
    {"dp2", {{{"dp", 2}}}, 0, 2},
    {"zero1", {{{"dp", 2}}}, 1, 2},
    {"zero2", {{{"dp", 2}}}, 2, 2},
    {"zero3", {{{"dp", 2}}}, 3, 2, RecomputeMode::full},
    {"tp2", {{{"dp", 1}, {"tp", 2}}}, 0, 2, RecomputeMode::selective},
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

// Each buffer of a value that an op makes is laid over another that is in use, one at a time.
TEST_P(Planted, BuffersThatOverlapWhileBothLive) {
  const Program program = lowered(GetParam());
  int found = 0, tried = 0;
  for (size_t moved = 0; moved < program.buffers.size(); ++moved) {
    const Buffer& buffer = program.buffers[moved];
    if (buffer.kind != BufferClass::saved && buffer.kind != BufferClass::weights) continue;
    for (size_t over = 0; over < program.buffers.size(); ++over) {
      if (over == moved || program.buffers[over].kind != buffer.kind || program.buffers[over].bytes == 0) continue;
      Program broken = program;
      broken.buffers[moved].offset = program.buffers[over].offset;
      ++tried;
      found += !refusal(broken).empty();
      if (tried % 7 == 0) break;
    }
  }
  ASSERT_GT(tried, 5);
  EXPECT_EQ(found, tried);  // weights are all read, saved values all live until backward
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
  EXPECT_EQ(waits > 0, program.mesh.world_size() > 1 && program.mesh.find("dp") &&
                           program.mesh.size(*program.mesh.find("dp")) > 1);
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
  LowerOptions options{.plan = {.microbatches = 4}, .train = AdamW{}, .pipeline = schedule};
  std::vector<Program> programs = lower_all(build_model(spec, {.batch = 2, .seq = 16}, c.mesh), cpu_target(1), options);
  for (Program& program : programs) {
    EXPECT_EQ(refusal(program), "");
    for (const Numbered& at : ops_of(program)) {
      if (!at.op->def->holds_inputs) continue;
      const Value& sent = program[at.op->inputs[0]];
      Program broken = program;
      broken.buffers[static_cast<size_t>(sent.buffer)].slots = 1;
      bool several = program.buffers[static_cast<size_t>(sent.buffer)].slots > 1;
      if (several) EXPECT_NE(refusal(broken), "") << sent.path;
    }
  }
}

}  // namespace
}  // namespace sextant
