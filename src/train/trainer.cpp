#include "train/trainer.h"

#include <algorithm>
#include <chrono>

#include "train/lr_schedule.h"

namespace sextant {

namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Trainer::Trainer(const RunConfig& run, const RunPrograms& programs, const Dataset& dataset, Executor& executor)
    : run_(run),
      programs_(programs),
      dataset_(dataset),
      arena_(executor.allocate(programs.arena_bytes)),
      train_(executor.bind(programs.train, *arena_)),
      tokens_(static_cast<size_t>(microbatch_tokens())),
      targets_(static_cast<size_t>(microbatch_tokens())) {
  if (programs.evaluate) evaluate_ = executor.bind(*programs.evaluate, *arena_);
}

int64_t Trainer::fill(const BatchSampler& sampler, int64_t first_sample, Bound& bound) {
  sampler.fill(first_sample, run_.batch.microbatch, tokens_, targets_);
  bound.write(bound.program().at("tokens"), std::as_bytes(std::span(tokens_)));
  bound.write(bound.program().at("targets"), std::as_bytes(std::span(targets_)));
  return std::count_if(targets_.begin(), targets_.end(), [](int32_t t) { return t >= 0; });
}

StepMetrics Trainer::run_step(int64_t step, int64_t first_sample) {
  double start = now_s();
  const Program& program = programs_.train;
  StepMetrics metrics{.step = step, .lr = learning_rate(run_.optimizer, run_.train.steps, step),
                      .arena_bytes = arena_->bytes()};
  // Every token of the global batch weighs the same, however it is cut into microbatches. Packed data has no padding, so the
  // count is known before the first microbatch.
  int64_t batch_tokens = run_.batch.sequences * run_.batch.seq;
  write_value(*train_, program.at("loss_scale"), 1.0f / static_cast<float>(batch_tokens));
  write_value(*train_, program.at("lr"), static_cast<float>(metrics.lr));
  write_value(*train_, program.at("step"), static_cast<int32_t>(step));
  double loss = 0;
  for (const Action& action : program.schedule) {
    if (action.region == RegionKind::forward)
      fill(dataset_.train, first_sample + action.microbatch * run_.batch.microbatch, *train_);
    train_->run(action);
    if (action.region == RegionKind::backward)
      loss += static_cast<double>(read_value<float>(*train_, program.at("loss")));
  }
  metrics.loss = loss / static_cast<double>(batch_tokens);
  metrics.grad_norm = static_cast<double>(read_value<float>(*train_, program.at("grad_norm")));
  metrics.step_s = now_s() - start;
  metrics.tokens_per_s = static_cast<double>(batch_tokens) / metrics.step_s;
  return metrics;
}

std::optional<double> Trainer::evaluate() {
  if (!evaluate_ || !dataset_.validation) return std::nullopt;
  int64_t available = 0;
  for (int source = 0; source < dataset_.validation->source_count(); ++source)
    available += dataset_.validation->samples(source);
  // A small validation set is measured once, not over and over.
  int64_t batches = std::clamp<int64_t>(available / run_.batch.microbatch, 1, run_.train.eval_batches);
  double loss = 0;
  int64_t counted = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    counted += fill(*dataset_.validation, batch * run_.batch.microbatch, *evaluate_);
    run_schedule(*evaluate_);
    loss += static_cast<double>(read_value<float>(*evaluate_, programs_.evaluate->at("loss")));
  }
  return loss / static_cast<double>(counted);
}

}  // namespace sextant
