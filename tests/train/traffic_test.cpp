// Bytes that one training step sends, counted by the executor on every rank, against the textbook's formulas and
// against the Program's own figure. In the formulas n (or t) is the size of the axis, M the number of microbatches, L
// that of layers.
#include <gtest/gtest.h>

#include <chrono>

#include "ckpt/model_weights.h"
#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "plan/traffic.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/trainer.h"

namespace sextant {
namespace {

using Traffic = std::map<std::string, int64_t>;

constexpr int64_t kElement = 4;  // bytes of a float

struct Step {
  ModelSpec spec;
  int64_t weights = 0;  // bytes of all parameters
  int64_t head = 0;     // bytes of the head's own; 0 when it is tied
  int64_t microbatches = 0;
  int64_t rows = 0;                    // tokens of a microbatch on one data-parallel rank
  std::vector<Traffic> sent, planned;  // by rank

  int64_t activation() const { return rows * spec.hidden * kElement; }
};

class TrafficOf : public testing::Test {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("traffic");
    return run;
  }

  static Step step(std::vector<std::string> settings, std::string_view file = "tiny-llama.toml") {
    settings.insert(settings.begin(),
                    {"train.eval_every=0", "batch.sequences=8", "batch.microbatch=2", "batch.seq=16"});
    RunConfig run = scratch().config(file, settings);
    ModelSpec spec = resolve_spec(run);
    RunShape shape = run_shape(run, spec);
    RunPrograms programs = build_programs(run, shape, cpu_target(1));
    ThreadTeam readers(1);
    Dataset dataset = open_dataset(run, spec, readers, [](std::string_view) {});

    int ranks = shape.mesh.world_size();
    Step step{.spec = spec,
              .microbatches = shape.pipeline.shape.microbatches,
              .rows = run.batch.microbatch * run.batch.seq,
              .sent = std::vector<Traffic>(static_cast<size_t>(ranks)),
              .planned = {}};
    for (const Value& value : programs.train[0].values)
      if (value.kind == ValueKind::parameter) step.weights += value.global_bytes().n;
    step.head = spec.tied_head ? 0 : spec.vocab * spec.hidden * kElement;
    for (int rank = 0; rank < ranks; ++rank)
      step.planned.push_back(bytes_to_send(programs.train[static_cast<size_t>(stage_rank_of(shape.mesh, rank))], rank));

    ThreadHub hub(ranks, std::chrono::seconds(60));
    for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
           auto executor = make_cpu_executor(1, {transport.rank(), &transport});
           HostGroup group(transport, kHostTag);
           Trainer trainer({run, programs, dataset, *executor, group});
           initialize_weights(trainer.bound(), 1);
           trainer.begin_step(1, 0);
           trainer.finish_step();
           step.sent[static_cast<size_t>(transport.rank())] = executor->bytes_sent();
         }))
      EXPECT_EQ(end.error, "");
    return step;
  }
};

// The square of the gradient norm, one number, added up over ranks that have parts of it: the first rank adds up and
// sends the sum to all, the others send it theirs.
int64_t norm_sum(int64_t n, size_t rank) {
  return (rank == 0 ? n - 1 : 1) * kElement;
}

void expect_all(const Step& step, const std::function<Traffic(size_t rank)>& textbook) {
  for (size_t rank = 0; rank < step.sent.size(); ++rank) {
    EXPECT_EQ(step.sent[rank], textbook(rank)) << "rank " << rank;
    EXPECT_EQ(step.sent[rank], step.planned[rank]) << "rank " << rank;
  }
}

// All gradients are added up once a step: 2(n−1)/n of their bytes.
TEST_F(TrafficOf, DataParallel) {
  for (int64_t n : {2, 4}) {
    Step s = step({fmt::format("mesh.dp={}", n), "batch.microbatch=1"});
    expect_all(s, [&](size_t) { return Traffic{{"dp", 2 * (n - 1) * s.weights / n}}; });
  }
}

// ZeRO-1: gradients are reduced to shards, weights gathered, once a step each: as much as plain data parallelism.
TEST_F(TrafficOf, Zero1) {
  for (int64_t n : {2, 4}) {
    Step s = step({fmt::format("mesh.dp={}", n), "mesh.zero=1", "batch.microbatch=1"});
    expect_all(s, [&](size_t rank) { return Traffic{{"dp", 2 * (n - 1) * s.weights / n + norm_sum(n, rank)}}; });
  }
}

// ZeRO-2: the gradients of every microbatch are reduced to shards.
TEST_F(TrafficOf, Zero2) {
  const int64_t n = 2;
  Step s = step({"mesh.dp=2", "mesh.zero=2"});
  ASSERT_EQ(s.microbatches, 2);
  expect_all(s, [&](size_t rank) {
    return Traffic{{"dp", (s.microbatches + 1) * (n - 1) * s.weights / n + norm_sum(n, rank)}};
  });
}

// ZeRO-3: in every microbatch each weight is gathered for forward, gathered again for backward, and its gradient
// reduced to shards: three times (n−1)/n of the bytes. The head's forward and backward are one op, and share one
// gather.
TEST_F(TrafficOf, Zero3) {
  for (int64_t n : {2, 4}) {
    Step s = step({fmt::format("mesh.dp={}", n), "mesh.zero=3", "batch.microbatch=1"});
    expect_all(s, [&](size_t rank) {
      int64_t moved = 3 * s.weights - s.head;
      return Traffic{{"dp", s.microbatches * (n - 1) * moved / n + norm_sum(n, rank)}};
    });
  }
}

// The log-sum-exps of the parts of the vocabulary: each rank sends its own, one number per token, to the others.
int64_t lse_gather(const Step& s, int64_t t) {
  return (t - 1) * s.rows * kElement;
}

// Megatron's f and g: per layer two all-reduces of b·s·h forward and two backward, each 2(t−1)/t; one for the
// embedding's output, one for the gradient of the head's input.
TEST_F(TrafficOf, TensorParallel) {
  const int64_t t = 2;
  Step s = step({"mesh.tp=2"});
  expect_all(s, [&](size_t rank) {
    int64_t all_reduce = 2 * (t - 1) * s.activation() / t;
    int64_t microbatch = (4 * s.spec.layers + 2) * all_reduce + lse_gather(s, t);
    return Traffic{{"tp", s.microbatches * microbatch + norm_sum(t, rank)}};
  });
}

// Every all-reduce becomes a reduce-scatter and an all-gather: per layer 4(t−1)/t of b·s·h forward, as much backward,
// and two to gather the inputs of qkv and gate_up again for their weight gradients. Beside the layers: the embedding's
// output is reduced and its gradient gathered, the head's input gathered and its gradient reduced. Once a step the
// gradients of the norms' weights, which each rank has for its part of the sequence, are added up.
TEST_F(TrafficOf, SequenceParallel) {
  const int64_t t = 2;
  Step s = step({"mesh.tp=2", "mesh.sequence_parallel=true"});
  expect_all(s, [&](size_t rank) {
    int64_t part = (t - 1) * s.activation() / t;
    int64_t microbatch = (s.spec.layers * (4 + 4 + 2) + 4) * part + lse_gather(s, t);
    int64_t norms = (2 * s.spec.layers + 1) * 2 * (t - 1) * s.spec.hidden * kElement / t;
    return Traffic{{"tp", s.microbatches * microbatch + norms + norm_sum(t, rank)}};
  });
}

// Between two stages the residual stream goes forth and its gradient back, whole, for every microbatch.
TEST_F(TrafficOf, Pipeline) {
  Step s = step({"mesh.pp=2"});
  expect_all(s, [&](size_t rank) { return Traffic{{"pp", s.microbatches * s.activation() + norm_sum(2, rank)}}; });
}

// Ulysses: q, k and v of the own positions are distributed by heads and the outputs back, (n−1)/n of them forward and
// backward.
TEST_F(TrafficOf, ContextParallelByAllToAll) {
  const int64_t n = 2;
  Step s = step({"mesh.cp=2", "mesh.context=ulysses"});
  expect_all(s, [&](size_t) {
    int64_t width = (2 * s.spec.heads + 2 * s.spec.kv_heads) * s.spec.head_dim;  // q, k, v and the output
    int64_t layer = 2 * (n - 1) * (s.rows / n) * width * kElement / n;
    return Traffic{{"cp", s.microbatches * s.spec.layers * layer + 2 * (n - 1) * s.weights / n}};
  });
}

// Ring: the own keys and values visit the n−1 others forward and backward; their gradient goes all the way around.
TEST_F(TrafficOf, ContextParallelByRing) {
  const int64_t n = 2;
  Step s = step({"mesh.cp=2", "mesh.context=ring"});
  expect_all(s, [&](size_t) {
    int64_t block = (s.rows / n) * 2 * s.spec.kv_heads * s.spec.head_dim * kElement;
    int64_t layer = ((n - 1) + (n - 1) + n) * block;
    return Traffic{{"cp", s.microbatches * s.spec.layers * layer + 2 * (n - 1) * s.weights / n}};
  });
}

// Several axes at once, schedules, a tied head: no formula, but the Program knows.
TEST_F(TrafficOf, EveryMeshIsWhatTheProgramSays) {
  const std::vector<std::vector<std::string>> meshes{
      {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2", "mesh.zero=3", "mesh.sequence_parallel=true", "train.recompute=full"},
      {"mesh.dp=4", "mesh.zero=3", "mesh.zero_ranks=2", "batch.microbatch=1"},
      {"mesh.dp=2", "mesh.cp=2", "mesh.zero=1"},
      {"mesh.cp=2", "mesh.context=ulysses", "mesh.tp=2"},
      {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2", "model.layers=4"},
      {"mesh.pp=2", "mesh.tp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2", "model.layers=4",
       "batch.microbatch=1"},
      {"mesh.pp=4", "mesh.zero=1", "pipeline.schedule=dualpipe", "pipeline.chunks=2", "model.layers=4",
       "batch.microbatch=1"},
      {"mesh.dp=2", "mesh.tp=2", "pipeline.schedule=combined-1f1b", "batch.microbatch=1"},
      {"mesh.dp=3", "mesh.zero=2", "batch.sequences=6", "batch.microbatch=1"},
  };
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    for (const std::vector<std::string>& settings : meshes) {
      SCOPED_TRACE(fmt::format("{} {}", file, fmt::join(settings, " ")));
      Step s = step(settings, file);
      EXPECT_EQ(s.sent, s.planned);
      for (const Traffic& traffic : s.sent) EXPECT_FALSE(traffic.empty());
    }
  }
}

}  // namespace
}  // namespace sextant
