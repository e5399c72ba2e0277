#include "bench/step_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/error.h"
#include "base/rng.h"
#include "comm/tags.h"
#include "comm/transport.h"

namespace sextant {

namespace {

constexpr int kWarmups = 2;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void draw_weight(Bound& bound, const Value& value) {
  int64_t width = value.local.rank() > 0 ? std::max<int64_t>(value.local[value.local.rank() - 1], 1) : 1;
  int64_t rows = value.local.count() / width;
  if (rows > 0) bound.draw(value, {value.init, Random(1, value.path), 0, width, rows, width, 0, width});
}

void write_tokens(Bound& bound, const Value& value, int64_t vocab) {
  Random random(2, value.path);
  std::vector<int32_t> tokens(static_cast<size_t>(value.local.count()));
  if (value.path != "begins" && value.path != crossed_path("begins"))
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<int32_t>(random.below(i, static_cast<uint64_t>(vocab)));
  int slots = bound.program().buffers[static_cast<size_t>(value.buffer)].slots;
  for (int slot = 0; slot < slots; ++slot) bound.write(value, std::as_bytes(std::span(tokens)), 0, slot);
}

// One rank's way through the steps. Rank 0 decides after each whether there is another.
class RankSteps {
 public:
  RankSteps(Bound& bound, Tracing tracing)
      : bound_(bound), tracing_(tracing), norm_(bound.program().find("grad_norm")) {}

  double step(int32_t number) {
    if (const Value* step = bound_.program().find("step"); step && step->buffer >= 0)
      write_value(bound_, *step, number);
    Trace trace;
    double start = now_s();
    for_each_unit(bound_.program().schedule,
                  [&](std::span<const Action> unit) { bound_.run(unit, tracing_ == Tracing::on ? &trace : nullptr); });
    bound_.settle();
    if (norm_ && norm_->buffer >= 0) bound_.collect(bound_.fetch(*norm_));
    double seconds = now_s() - start;
    if (tracing_ == Tracing::on) traces.push_back(std::move(trace));
    return seconds;
  }

  std::vector<Trace> traces;

 private:
  Bound& bound_;
  Tracing tracing_;
  const Value* norm_;
};

// The value of rank 0, on every rank.
char from_rank0(const RankContext& context, char word) {
  if (!context.transport) return word;
  std::span<std::byte> byte = std::as_writable_bytes(std::span(&word, 1));
  if (context.rank == 0) {
    for (int rank = 1; rank < context.transport->size(); ++rank)
      context.transport->wait(context.transport->send(rank, kHostTag, byte));
  } else {
    context.transport->wait(context.transport->receive(0, kHostTag, byte));
  }
  return word;
}

}  // namespace

void fill_for_training(Bound& bound, const RunConfig& run, int64_t vocab) {
  for (const Value& value : bound.program().values) {
    if (value.buffer < 0) continue;
    if (value.kind == ValueKind::parameter) draw_weight(bound, value);
    if (value.kind != ValueKind::feed) continue;
    if (value.path == "lr")
      write_value(bound, value, 1e-4f);
    else if (value.path == "loss_scale")
      write_value(bound, value, 1.0f / static_cast<float>(run.batch.sequences * run.batch.seq));
    else if (value.path == "balance_scale")
      write_value(bound, value, 1.0f);
    else if (value.shape.rank() == 2 && value.dtype == DType::i32)
      write_tokens(bound, value, vocab);
  }
}

StepTimes time_steps(const StepRequest& request, const LoweredRun& lowered, const Watch& watch) {
  int ranks = lowered.shape.mesh.world_size();
  StepTimes times;
  times.traces.resize(static_cast<size_t>(ranks));
  run_rank_threads(ranks, [&](const RankContext& context) {
    std::unique_ptr<Executor> executor = request.make_executor(context, request.threads);
    const Program& program =
        lowered.programs.train[static_cast<size_t>(stage_rank_of(lowered.shape.mesh, context.rank))];
    std::unique_ptr<Arena> arena = executor->allocate(program.arena_bytes, program.host_arena.all,
                                                      {program.nvme_arena.all, request.run.offload.path});
    std::unique_ptr<Bound> bound = executor->bind(program, *arena);
    fill_for_training(*bound, request.run, request.spec.vocab);
    RankSteps steps(*bound, request.tracing);
    double begin = 0;
    for (int step = 1;; ++step) {
      if (step == kWarmups + 1) begin = now_s();
      double seconds = steps.step(step);
      if (step <= kWarmups) continue;
      int done = step - kWarmups;
      if (context.rank == 0) times.seconds.push_back(seconds);
      bool enough =
          (done >= request.least_steps && now_s() - begin >= request.at_least_s) || done >= request.most_steps;
      if (from_rank0(context, context.rank == 0 && (enough || watch.stop())) != 0) break;
    }
    if (request.tracing == Tracing::on) steps.traces.erase(steps.traces.begin(), steps.traces.begin() + kWarmups);
    times.traces[static_cast<size_t>(context.rank)] = std::move(steps.traces);
  });
  return times;
}

}  // namespace sextant
