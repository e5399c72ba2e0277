// Bits that change in memory between steps, planted in weights and optimizer states of every kind on drawn meshes: each
// is found in the step that would have built on it, its tensor and rank are named, it gets into no checkpoint, and a
// run without one has the bits of an unchecked run and raises no alarm.
#include <gtest/gtest.h>

#include <bit>
#include <mutex>
#include <set>

#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "corrupted_run.h"
#include "exec/cpu/state_check.h"
#include "forwarding_executor.h"

namespace sextant {
namespace {

struct Flip {
  std::string path;
  ValueKind kind;
  int rank = -1;
};

// Records the flips of the injector: nothing else writes a single byte.
class FlipNotingBound final : public ForwardingBound {
 public:
  FlipNotingBound(std::unique_ptr<Bound> bound, std::vector<Flip>& flips)
      : ForwardingBound(std::move(bound)), flips_(flips) {}
  void write(const Value& value, std::span<const std::byte> from, int64_t offset, int microbatch) override {
    if (from.size() == 1) {
      static std::mutex mutex;
      std::lock_guard lock(mutex);
      flips_.push_back({value.path, value.kind, rank()});
    }
    ForwardingBound::write(value, from, offset, microbatch);
  }

 private:
  std::vector<Flip>& flips_;
};

// A bit changes while a save reads the state.
class FlippedInSaveBound final : public ForwardingBound {
 public:
  explicit FlippedInSaveBound(std::unique_ptr<Bound> bound) : ForwardingBound(std::move(bound)) {}
  void read(const Value& value, std::span<std::byte> to, int64_t offset) const override {
    ForwardingBound::read(value, to, offset);
    if (value.kind != ValueKind::state || !std::exchange(armed_, false)) return;
    std::byte changed = to[0] ^ std::byte{1};
    const_cast<FlippedInSaveBound*>(this)->ForwardingBound::write(value, std::span(&changed, 1), offset, 0);
  }

 private:
  mutable bool armed_ = true;
};

MakeExecutor wrapped(ForwardingExecutor::Wrap wrap) {
  return [wrap = std::move(wrap)](const RankContext& context, int threads) -> std::unique_ptr<Executor> {
    return std::make_unique<ForwardingExecutor>(make_cpu_executor(threads, context), wrap);
  };
}

struct MemoryCase {
  Overrides settings;
  int ranks;
  const char* file = "tiny-llama.toml";
  int flips = 2;
};

std::vector<MemoryCase> memory_cases() {
  return {
      {{}, 1},
      {{"mesh.dp=2"}, 2},
      {{"mesh.dp=2", "mesh.zero=1"}, 2},
      {{"mesh.dp=2", "mesh.zero=2", "mesh.overlap=false"}, 2},
      {{"mesh.dp=2", "mesh.zero=3"}, 2},
      {{"mesh.tp=2"}, 2},
      {{"mesh.tp=2", "mesh.dp=2", "mesh.zero=1"}, 4},
      {{"mesh.pp=2"}, 2},
      {{"mesh.pp=2", "mesh.dp=2", "mesh.zero=2", "pipeline.schedule=gpipe"}, 4},
      {{"mesh.dp=2", "mesh.zero=1", "optimizer.state=int8", "model.hidden=64", "model.ffn=512"}, 2},
      {{"mesh.tp=2", "optimizer.state=bf16"}, 2},
      {{"mesh.dp=2", "train.precision=fp16"}, 2, "tiny-llama.toml", 6},
      {{"mesh.zero=1", "mesh.dp=2", "train.master_weights=bf16", "optimizer.state=bf16"}, 2},
      {{"optimizer.name=lion", "optimizer.lr=1e-4"}, 1},
      {{"optimizer.name=muon", "mesh.dp=2"}, 2},
      {{"optimizer.name=adafactor"}, 1},
      {{"optimizer.name=sgd", "optimizer.momentum=0.9"}, 1},
      {{"offload.optimizer=true"}, 1},
      {{}, 1, "tiny-moe.toml"},
      {{"train.precision=fp8", "mesh.dp=2"}, 2},
  };
}

std::string name_of_case(const MemoryCase& c) {
  return fmt::format("{} {}", c.file, fmt::join(c.settings, " "));
}

class MemoryCheck : public Corrupted {
 protected:
  MemoryCheck()
      : Corrupted(wrapped([this](std::unique_ptr<Bound> bound) {
          return std::make_unique<FlipNotingBound>(std::move(bound), flips_);
        })) {}

  std::vector<Flip> flips_;
};

TEST_F(MemoryCheck, AFlippedBitIsFoundInItsStepAndItsTensorNamed) {
  int draw = 0;
  std::set<ValueKind> kinds;
  for (const MemoryCase& c : memory_cases()) {
    for (int turn = 0; turn < c.flips; ++turn) {
      ++draw;
      int rank = draw % c.ranks;
      std::string fault = fmt::format("flip_memory={}@3:{}", draw, rank);
      SCOPED_TRACE(fmt::format("{} with {}", name_of_case(c), fault));
      flips_.clear();
      Found found = run(c.settings, fault, c.file);
      EXPECT_EQ(found.code, ExitCode::corruption) << found.text;
      ASSERT_EQ(flips_.size(), 1u);
      EXPECT_EQ(flips_[0].rank, rank);
      kinds.insert(flips_[0].kind);
      ASSERT_TRUE(found.event) << found.text;
      EXPECT_EQ(found.event->step, 3);
      EXPECT_EQ(found.event->details.integer("rank"), rank);
      std::string line = event_line(*found.event);
      EXPECT_NE(line.find("\"check\":\"memory\""), std::string::npos) << line;
      EXPECT_NE(line.find(fmt::format("\"op\":\"{}\"", flips_[0].path)), std::string::npos) << line;
      EXPECT_NE(found.text.find("of a 32-bit word, which was"), std::string::npos) << found.text;
    }
  }
  EXPECT_EQ(kinds, (std::set{ValueKind::parameter, ValueKind::state, ValueKind::low_bits}));
}

TEST_F(MemoryCheck, ARunWithoutAFaultHasTheBitsOfAnUncheckedOne) {
  for (const MemoryCase& c : memory_cases()) {
    SCOPED_TRACE(name_of_case(c));
    Found unchecked = run(with(c.settings, {"train.check_memory=false"}), "", c.file);
    std::vector<std::string> expected = scratch_.losses(last_out_), norms = scratch_.metric(last_out_, "grad_norm");
    Found checked = run(c.settings, "", c.file);
    EXPECT_EQ(checked.text, "");
    EXPECT_EQ(expected.size(), 5u) << unchecked.text;
    EXPECT_EQ(scratch_.losses(last_out_), expected);
    EXPECT_EQ(scratch_.metric(last_out_, "grad_norm"), norms);
  }
}

TEST_F(MemoryCheck, ChecksumsAreTakenAnewAfterAResume) {
  std::vector<Fault> none;
  for (const Overrides& mesh : {Overrides{}, Overrides{"mesh.dp=2", "mesh.zero=1"}, Overrides{"mesh.tp=2"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(mesh, " ")));
    std::filesystem::path out = scratch_.root() / fmt::format("resumed-{}", ++runs_);
    auto go_on = [&](const Overrides& more, const std::vector<Fault>& faults) {
      train(config(with(with(mesh, {"checkpoint.every=2", "train.check_memory=true"}), more), "tiny-llama.toml"), out,
            executors_, {}, {.verbosity = Verbosity::quiet}, faults);
    };
    EXPECT_NO_THROW(go_on({"train.steps=3", "optimizer.schedule=constant"}, none));
    flips_.clear();
    EXPECT_THROW(go_on({"train.steps=8", "optimizer.schedule=constant"}, {parse_fault("flip_memory=7@5", "test")}),
                 RunError);
    EXPECT_EQ(flips_.size(), 1u);
    EXPECT_NO_THROW(go_on({"train.steps=8", "optimizer.schedule=constant"}, none));
    EXPECT_EQ(scratch_.losses(out.filename().string()).size(), 8u);
  }
}

TEST_F(MemoryCheck, AFaultThatIsNotLookedForGoesUnseen) {
  Found found = run({"train.check_memory=false"}, "flip_memory=5@3");
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(flips_.size(), 1u);
}

TEST(MemoryCheckOfSaves, AStateThatChangedIsNotSaved) {
  ScratchRun scratch("memory-saves");
  MakeExecutor executors =
      wrapped([](std::unique_ptr<Bound> bound) { return std::make_unique<FlippedInSaveBound>(std::move(bound)); });
  for (const char* background : {"true", "false"}) {
    std::filesystem::path out = scratch.root() / background;
    RunConfig run =
        scratch.config("tiny-llama.toml", {"train.steps=4", "train.eval_every=0", "model.layers=2", "batch.seq=16",
                                           "checkpoint.every=2", fmt::format("checkpoint.background={}", background)});
    std::string said;
    try {
      train(run, out, executors);
    } catch (const RunError& error) {
      said = error.what();
      EXPECT_EQ(error.exit_code(), ExitCode::corruption) << said;
    }
    EXPECT_NE(said.find("changed in memory after it was last written"), std::string::npos) << said;
    EXPECT_TRUE(list_checkpoints(out, kRunStateFile).empty());
  }
}

TEST(StateChecksum, IsTheSumOfWords) {
  std::vector<std::byte> bytes;
  uint64_t expected = 0;
  for (uint64_t i = 0; i < 1003; ++i) {
    bytes.push_back(std::byte(i * 37 + 11));
    expected += uint64_t{std::to_integer<uint8_t>(bytes.back())} << (8 * (i % 4));
    EXPECT_EQ(checksum_of(bytes), expected) << i;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1} << (i % 8);
    uint64_t changed = checksum_of(bytes);
    EXPECT_TRUE(std::has_single_bit(changed - expected) || std::has_single_bit(expected - changed)) << i;
    bytes[i] ^= std::byte{1} << (i % 8);
  }
}

}  // namespace
}  // namespace sextant
