// A step that is run again gives what the run recorded, bit for bit; and what was planted in it is found and named.
#include "replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "ir/op_def.h"
#include "planted_run.h"
#include "replay/bisect.h"
#include "replay/f64_executor.h"
#include "replay/verdict.h"
#include "train/forwarding_executor.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// Changes an output of an op on one rank, in one step.
struct PlantedFault {
  std::string kind;  // of the op
  int layer = 0;
  int64_t step = 0;
  int rank = 0;
  int64_t element = 0;  // of its first output
  std::function<float(float)> change;
};

class FaultyBound final : public ForwardingBound, public OpObserver {
 public:
  FaultyBound(std::unique_ptr<Bound> bound, const PlantedFault& fault) : FaultyBound(bound.get(), bound, fault) {}

  void observe(OpObserver* observer) override { outer_ = observer; }
  void write(const Value& value, std::span<const std::byte> from, int64_t offset, int microbatch) override {
    ForwardingBound::write(value, from, offset, microbatch);
    if (value.path == "step") std::memcpy(&step_, from.data(), sizeof step_);
  }
  void after(const OpRun& run) override {
    bool here = step_ == fault_.step && rank() == fault_.rank && run.op.def->name == fault_.kind &&
                run.op.block == fault_.layer && run.action.microbatch == 0;
    if (here) {
      float& x = run.outputs[0].as<float>()[fault_.element];
      x = fault_.change(x);
    }
    if (outer_) outer_->after(run);
  }

 private:
  FaultyBound(Bound* inner, std::unique_ptr<Bound>& bound, const PlantedFault& fault)
      : ForwardingBound(std::move(bound)), fault_(fault) {
    inner->observe(this);
  }
  const PlantedFault& fault_;
  OpObserver* outer_ = nullptr;
  int32_t step_ = 0;
};

MakeExecutor faulty(const PlantedFault& fault) {
  return [&fault](const RankContext& context, int threads) {
    return std::make_unique<ForwardingExecutor>(
        make_cpu_executor(threads, context),
        [&fault](std::unique_ptr<Bound> bound) { return std::make_unique<FaultyBound>(std::move(bound), fault); });
  };
}

Dataset data_of(const ReplayPlan& plan) {
  ThreadTeam team(1);
  return open_dataset(plan.run, resolve_spec(plan.run), team, [](std::string_view) {});
}

const Settings kRun{"train.steps=9",        "train.eval_every=0", "checkpoint.every=4", "checkpoint.keep=0",
                    "optimizer.name=adamw", "optimizer.lr=0.01",  "model.layers=3"};

constexpr double kRounding = 1e-3;

TEST(Replay, GivesTheRecordBitForBit) {
  PlantedRun runs("replay");
  for (const auto& [name, mesh] :
       {std::pair{"one", Settings{}}, std::pair{"dp2tp2", Settings{"mesh.dp=2", "mesh.tp=2", "batch.microbatch=1"}},
        std::pair{"pp2", Settings{"mesh.pp=2", "batch.microbatch=1"}}}) {
    runs.run(name, "clean.u16", with(kRun, mesh));
    for (int64_t step : {3, 5, 8}) {  // from the initial weights, right behind a checkpoint, and further on
      ReplayPlan plan = plan_replay(runs.out(name), step, {});
      EXPECT_EQ(plan.checkpoint_step, step == 3 ? 0 : 4) << step;
      Replayed replayed = replay(plan, data_of(plan), cpu_ranks(), {.times = 2, .ops = true});
      std::optional<RecordedStep> recorded = recorded_step(runs.out(name), step);
      ASSERT_TRUE(recorded);
      for (const Execution& execution : replayed.executions) {
        EXPECT_EQ(execution.metrics[number::loss], recorded->loss) << name << " " << step;
        EXPECT_EQ(execution.metrics[number::grad_norm], recorded->grad_norm) << name << " " << step;
        EXPECT_EQ(first_non_finite(execution.ops), nullptr);
      }
      EXPECT_EQ(first_different(replayed.executions[0].ops, replayed.executions[1].ops), nullptr);
      Judgement judgement = judge(recorded, replayed.executions, kRounding);
      EXPECT_EQ(judgement.verdict, ReplayVerdict::reproducible);
      EXPECT_TRUE(judgement.bit_equal);
    }
  }
}

// Options that the config.json of a checkpoint does not hold: the run's config has them.
TEST(Replay, TakesOptionsOfTrainingOnly) {
  PlantedRun runs("replay-options");
  const std::vector<std::pair<std::string, Settings>> options{
      {"drop", {"model.experts.drop_above=1", "model.experts.drop_policy=position"}},
      {"forced", {"model.experts.forced_balance=true"}}};
  for (const auto& [name, option] : options) {
    Settings experts{"model.architecture=mixtral", "model.experts.count=4", "model.experts.per_token=2"};
    runs.run(name, "clean.u16", with(with(kRun, experts), option));
    ReplayPlan plan = plan_replay(runs.out(name), 5, {});
    EXPECT_EQ(plan.checkpoint_step, 4) << name;
    Replayed replayed = replay(plan, data_of(plan), cpu_ranks(), {.times = 1});
    Judgement judgement = judge(recorded_step(runs.out(name), 5), replayed.executions, kRounding);
    EXPECT_EQ(judgement.verdict, ReplayVerdict::reproducible) << name;
    EXPECT_TRUE(judgement.bit_equal) << name;
  }
}

// A weight and a bias whose gradients ops of one path make, and an embedding to whose gradient two ops add.
TEST(Replay, GradientsOfBiasesAndTiedEmbeddingsAreComparedEachWithItsOwn) {
  PlantedRun runs("replay-tied");
  train(
      runs.scratch().config("tiny-gpt2.toml", {"train.steps=2", "train.eval_every=0", "model.hidden=32", "batch.seq=16",
                                               "batch.sequences=4", "batch.microbatch=1", "mesh.dp=2"}),
      runs.out("gpt2"), cpu_ranks(), {}, {.verbosity = Verbosity::quiet});
  ReplayPlan plan = plan_replay(runs.out("gpt2"), 2, {});
  Dataset dataset = data_of(plan);
  Replayed own = replay(plan, dataset, cpu_ranks(), {.times = 2, .ops = true});
  EXPECT_EQ(judge(recorded_step(runs.out("gpt2"), 2), own.executions, kRounding).verdict, ReplayVerdict::reproducible);
  for (const Settings& mesh : {Settings{"mesh.dp=1"}, Settings{"mesh.dp=1", "mesh.pp=2"}, Settings{"mesh.zero=2"},
                               Settings{"mesh.dp=1", "batch.microbatch=4"}}) {
    Replayed there = replay(plan_replay(runs.out("gpt2"), 2, mesh), dataset, cpu_ranks(), {.ops = true});
    OutputComparison comparison = compare(own.executions[0].ops, there.executions[0].ops, kRounding);
    EXPECT_GT(comparison.compared, 30) << mesh.back();
    EXPECT_EQ(comparison.first, nullptr) << mesh.back() << " " << comparison.first->op << " " << comparison.difference;
  }
}

TEST(Replay, OtherMeshesGiveTheSameButForRounding) {
  PlantedRun runs("replay-meshes");
  runs.run("one", "clean.u16", kRun);
  ReplayPlan plan = plan_replay(runs.out("one"), 5, {});
  Dataset dataset = data_of(plan);
  Replayed own = replay(plan, dataset, cpu_ranks(), {.ops = true});
  for (const Settings& mesh :
       {Settings{"mesh.tp=2"}, Settings{"mesh.dp=2", "batch.microbatch=1"}, Settings{"mesh.pp=3", "batch.microbatch=1"},
        Settings{"mesh.dp=2", "mesh.zero=3", "batch.microbatch=1"}, Settings{"batch.microbatch=4"}}) {
    ReplayPlan other = plan_replay(runs.out("one"), 5, mesh);
    Replayed there = replay(other, dataset, cpu_ranks(), {.ops = true});
    OutputComparison comparison = compare(own.executions[0].ops, there.executions[0].ops, kRounding);
    EXPECT_GT(comparison.compared, 60) << mesh[0];
    EXPECT_EQ(comparison.first, nullptr) << mesh[0] << " " << comparison.first->op << " " << comparison.difference;
    EXPECT_LT(comparison.largest, 1e-4) << mesh[0];
    // One number that is wrong on one rank: the op that made it is the first to differ.
    PlantedFault fault{
        .kind = "swiglu", .layer = 1, .step = 5, .rank = 0, .element = 7, .change = [](float x) { return x + 1; }};
    if (mesh[0] == "mesh.pp=3") fault.rank = 1;
    Replayed wrong = replay(other, dataset, faulty(fault), {.ops = true});
    OutputComparison found = compare(own.executions[0].ops, wrong.executions[0].ops, kRounding);
    ASSERT_NE(found.first, nullptr) << mesh[0];
    EXPECT_EQ(found.first->kind, "swiglu") << mesh[0];
    EXPECT_EQ(found.first->layer, 1) << mesh[0];
  }
}

TEST(Replay, NamesTheOpRankAndTokenOfANaN) {
  PlantedRun runs("replay-nan");
  // Rank 2 of dp 2, tp 2 has the second half of the sequences and the first of the columns.
  Settings settings = with(kRun, {"mesh.dp=2", "mesh.tp=2", "batch.microbatch=1", "train.non_finite_steps=5"});
  int64_t columns = 32, position = 5;
  PlantedFault fault{
      .kind = "swiglu", .layer = 2, .step = 7, .rank = 2, .element = position * columns + 3, .change = [](float) {
        return std::nanf("");
      }};
  train(runs.config("clean.u16", settings), runs.out("nan"), faulty(fault), {}, {.verbosity = Verbosity::quiet});
  std::optional<RecordedStep> recorded = recorded_step(runs.out("nan"), 7);
  ASSERT_TRUE(recorded);
  EXPECT_TRUE(std::isnan(recorded->loss));
  ReplayPlan plan = plan_replay(runs.out("nan"), 7, {});
  Dataset dataset = data_of(plan);
  // On a machine without the fault it does not come again.
  Replayed healthy = replay(plan, dataset, cpu_ranks(), {.times = 2, .ops = true});
  EXPECT_EQ(judge(recorded, healthy.executions, kRounding).verdict, ReplayVerdict::transient);
  EXPECT_EQ(first_non_finite(healthy.executions[0].ops), nullptr);
  // On the machine that has it, it does.
  Replayed faulty_again = replay(plan, dataset, faulty(fault), {.times = 2, .ops = true});
  EXPECT_EQ(judge(recorded, faulty_again.executions, kRounding).verdict, ReplayVerdict::reproducible);
  const ObservedOutput* first = first_non_finite(faulty_again.executions[0].ops);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->kind, "swiglu");
  EXPECT_EQ(first->layer, 2);
  EXPECT_EQ(first->rank, 2);
  EXPECT_EQ(first->action.region, RegionKind::forward);
  EXPECT_EQ(first->summary.non_finite, 1);
  EXPECT_EQ(first->summary.first_non_finite, (std::vector<int64_t>{1, position, 3}));
  auto token = token_of(*first, plan.microbatch_sequences, plan.run.batch.seq, plan.first_sample);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->sample, (7 - 1) * PlantedRun::kSequences + 1);
  EXPECT_EQ(token->position, position);
}

// The same by the drill that users have.
TEST(Replay, ANaNThatIsInjectedIsFoundWhereItWas) {
  PlantedRun runs("replay-drill");
  Fault fault = parse_fault("nan_op=layers.1.mlp.swiglu@5:1", "--inject");
  train(runs.config("clean.u16", with(kRun, {"mesh.dp=2", "train.steps=6", "train.non_finite_steps=5"})),
        runs.out("nan"), cpu_ranks(), {}, {.verbosity = Verbosity::quiet}, {fault});
  std::optional<RecordedStep> recorded = recorded_step(runs.out("nan"), 5);
  ASSERT_TRUE(recorded);
  EXPECT_TRUE(std::isnan(recorded->loss));
  EXPECT_TRUE(std::isfinite(recorded_step(runs.out("nan"), 6)->loss));
  ReplayPlan plan = plan_replay(runs.out("nan"), 5, {});
  Dataset dataset = data_of(plan);
  EXPECT_EQ(judge(recorded, replay(plan, dataset, cpu_ranks(), {.times = 2}).executions, kRounding).verdict,
            ReplayVerdict::transient);
  Replayed replayed = replay(plan, dataset, cpu_ranks(), {.times = 2, .ops = true, .faults = {fault}});
  EXPECT_EQ(judge(recorded, replayed.executions, kRounding).verdict, ReplayVerdict::reproducible);
  const ObservedOutput* first = first_non_finite(replayed.executions[0].ops);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->op, "layers.1.mlp.swiglu");
  EXPECT_EQ(first->rank, 1);
  Fault nowhere = parse_fault("nan_op=layers.9.mlp.swiglu@5:1", "--inject");
  EXPECT_THROW(replay(plan, dataset, cpu_ranks(), {.faults = {nowhere}}), UserError);
}

TEST(Replay, ExecutionsThatDifferAreTheMachinesFault) {
  PlantedRun runs("replay-unstable");
  runs.run("run", "clean.u16", kRun);
  ReplayPlan plan = plan_replay(runs.out("run"), 5, {});
  int calls = 0;
  PlantedFault fault{.kind = "swiglu", .layer = 1, .step = 5, .rank = 0, .element = 9, .change = [&](float x) {
                       return ++calls == 2 ? x * 1.0001f : x;
                     }};
  Replayed replayed = replay(plan, data_of(plan), faulty(fault), {.times = 2, .ops = true});
  EXPECT_EQ(judge(recorded_step(runs.out("run"), 5), replayed.executions, kRounding).verdict,
            ReplayVerdict::persistent);
  const ObservedOutput* first = first_different(replayed.executions[0].ops, replayed.executions[1].ops);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->kind, "swiglu");
  EXPECT_EQ(first->layer, 1);
}

TEST(Replay, NamesTheDocumentWithTheHighestLoss) {
  PlantedRun runs("replay-document");
  constexpr int kBadLine = 37;
  std::ofstream lines(runs.root() / "text.jsonl");
  for (int line = 1; line <= 200; ++line) {
    std::string text;
    for (int i = 0; i < 6; ++i) text += fmt::format("the cat {} sat on the mat. ", (line + i) % 3);
    if (line == kBadLine) text = "zqx jvk wpf gyb zzq xkj vwq pfy bgz qxj kvw zyp";
    lines << fmt::format("{{\"text\": \"{}\"}}\n", text);
  }
  lines.close();
  Settings settings{fmt::format("data.train={}", (runs.root() / "text.jsonl").string()),
                    "data.validation=[]",
                    "data.validation_fraction=0",
                    "data.tokenizer_vocab=300",
                    "model.vocab=300",
                    "train.eval_every=0",
                    "train.steps=60",
                    "optimizer.lr=0.1",
                    "checkpoint.every=5",
                    "checkpoint.keep=0"};
  runs.run("run", "clean.u16", settings);
  // The step that has most of it.
  ReplayPlan plan = plan_replay(runs.out("run"), 1, {});
  Dataset dataset = data_of(plan);
  int64_t bad_step = 0, most = 0;
  for (const TracedSample& sample : trace_samples(dataset, 80, 160))
    for (const TracedPiece& piece : sample.pieces)
      if (piece.origin && piece.origin->record == kBadLine && piece.tokens > most)
        most = piece.tokens, bad_step = sample.sample / PlantedRun::kSequences + 1;
  ASSERT_GT(bad_step, 20);
  plan = plan_replay(runs.out("run"), bad_step, {});
  Replayed replayed = replay(plan, dataset, cpu_ranks(), {.documents = true});
  ASSERT_TRUE(replayed.documents);
  ASSERT_FALSE(replayed.documents->documents.empty());
  const DocumentLoss& worst = replayed.documents->documents.front();
  ASSERT_TRUE(worst.piece.origin);
  EXPECT_EQ(worst.piece.origin->record, kBadLine);
  EXPECT_EQ(fs::path(worst.piece.origin->file).filename(), "text.jsonl");
  EXPECT_GT(worst.loss, 2 * replayed.documents->median);
}

TEST(Replay, StepsAfterARewindAreFoundAndRepeated) {
  PlantedRun runs("replay-rewind");
  runs.plant_bad_step(44);
  runs.run("run", "bad.u16",
           {"train.spike.action=rewind", "train.spike.rewind_steps=5", "checkpoint.every=10", "checkpoint.keep=0",
            "train.eval_every=0", "train.steps=46"});
  for (int64_t step : {12, 34, 45}) {
    ReplayPlan plan = plan_replay(runs.out("run"), step, {});
    Replayed replayed = replay(plan, data_of(plan), cpu_ranks(), {});
    EXPECT_EQ(replayed.executions[0].metrics[number::loss], recorded_step(runs.out("run"), step)->loss) << step;
  }
}

TEST(Replay, InF64TheStepIsTheSameButForRounding) {
  PlantedRun runs("replay-f64");
  runs.run("run", "clean.u16", kRun);
  ReplayPlan plan = plan_replay(runs.out("run"), 6, {"mesh.tp=2"});
  Dataset dataset = data_of(plan);
  MakeExecutor wide = [](const RankContext& context, int threads) {
    return make_f64_executor(make_cpu_executor(threads, context));
  };
  Replayed f64 = replay(plan, dataset, wide, {.ops = true, .documents = true});
  Replayed f32 = replay(plan, dataset, cpu_ranks(), {.ops = true});
  EXPECT_TRUE(std::ranges::any_of(f64.executions[0].ops, [](const ObservedOutput& output) {
    return output.kind == "swiglu" && output.summary.rms() > 0;
  }));
  OutputComparison comparison = compare(f64.executions[0].ops, f32.executions[0].ops, kRounding);
  EXPECT_GT(comparison.compared, 60);
  EXPECT_EQ(comparison.first, nullptr) << comparison.first->op;
  EXPECT_GT(comparison.largest, 0);
  EXPECT_NEAR(f64.executions[0].metrics[number::loss], f32.executions[0].metrics[number::loss], 1e-5);
  EXPECT_NEAR(f64.executions[0].metrics[number::grad_norm], f32.executions[0].metrics[number::grad_norm], 1e-4);
}

TEST(Replay, RefusesWhatWouldBeAnotherStep) {
  PlantedRun runs("replay-refused");
  runs.run("run", "clean.u16", with(kRun, {"train.steps=2"}));
  EXPECT_THROW(plan_replay(runs.out("run"), 1, {"optimizer.lr=1"}), UserError);
  EXPECT_THROW(plan_replay(runs.out("run"), 1, {"train.seed=4"}), UserError);
  EXPECT_THROW(plan_replay(runs.out("run"), 3, {}), UserError);
  EXPECT_THROW(plan_replay(runs.root() / "none", 1, {}), UserError);
  EXPECT_NO_THROW(plan_replay(runs.out("run"), 1, {"mesh.tp=2", "train.threads=1"}));
}

}  // namespace
}  // namespace sextant
