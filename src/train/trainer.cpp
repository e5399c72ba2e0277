#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "exec/op_place.h"
#include "train/lr_schedule.h"

namespace sextant {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Losses of a step that may be under way at once: several steps of them, and their norms, are no more than an executor
// holds.
constexpr size_t kOpenLosses = 256;
static_assert(3 * (kOpenLosses + 1) <= Bound::kFetchesUnderWay);

// The value may be absent: a pipeline rank has only the feeds and fetches of its own stages.
template <class T>
void write_if_present(Bound& bound, std::string_view path, T x) {
  const Value* value = bound.program().find(path);
  if (value && value->buffer >= 0) write_value(bound, *value, x);
}

// The chunk whose backward yields the loss; -1 where none of this rank's does.
int chunk_with_loss(const Program& program) {
  const Value* loss = program.find("loss");
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      if (loss && std::find(op.outputs.begin(), op.outputs.end(), loss->id) != op.outputs.end()) return region.chunk;
  return -1;
}

}  // namespace

Trainer::Trainer(const Parts& parts)
    : run_(parts.run), dataset_(parts.dataset), group_(parts.group), rank_status_(parts.rank_status) {
  size_t stage_rank = static_cast<size_t>(stage_rank_of(parts.programs.train[0].mesh, group_.rank()));
  arena_ = parts.executor.allocate(parts.programs.arena_bytes(static_cast<int>(stage_rank)));
  train_ = parts.executor.bind(parts.programs.train[stage_rank], *arena_);
  auto seed = static_cast<uint64_t>(run_.train.seed);
  train_feeder_ = std::make_unique<Feeder>(*train_, dataset_.train, dataset_.end_of_text, seed);
  loss_chunk_ = chunk_with_loss(train_->program());
  balances_experts_ = std::any_of(parts.programs.train.begin(), parts.programs.train.end(),
                                  [](const Program& program) { return program.find("balance_loss") != nullptr; });
  steps_ahead_ = parts.executor.steps_ahead();
  begun_.resize(static_cast<size_t>(steps_ahead_) + 1);
  for (Begun& begun : begun_) {
    begun.losses.reserve(kOpenLosses);
    begun.balance_losses.reserve(kOpenLosses);
  }
  if (parts.programs.evaluate.empty() || !dataset_.validation) return;
  evaluate_ = parts.executor.bind(parts.programs.evaluate[stage_rank], *arena_);
  evaluate_feeder_ = std::make_unique<Feeder>(*evaluate_, *dataset_.validation, dataset_.end_of_text, seed);
}

bool Trainer::counts(const Bound& bound, std::string_view path) const {
  const Program& program = bound.program();
  const Value* loss = program.find(path);
  if (!loss || loss->buffer < 0) return false;
  // Along axes where the loss is partial every rank has its part; along the others all have the same.
  Coordinate at = coordinate_of(program.mesh, bound.rank());
  for (int axis = 0; axis < program.mesh.axis_count(); ++axis) {
    bool same_elsewhere = loss->layout.at(axis) != kPartial && program.mesh.role(axis) != AxisRole::pipeline;
    if (same_elsewhere && at[static_cast<size_t>(axis)] != 0) return false;
  }
  return true;
}

void Trainer::begin_step(int64_t step, int64_t first_sample, Trace* trace) {
  BUG_IF(steps_under_way() > steps_ahead_, "{} steps under way", steps_under_way());
  if (steps_under_way() == 0) last_finish_s_ = now_s();
  const Program& program = train_->program();
  Begun& begun = begun_[static_cast<size_t>(steps_begun_++) % begun_.size()];
  begun.step = step;
  begun.lr = learning_rate(run_.optimizer, run_.train.steps, step);
  begun.loss = begun.balance_loss = 0;
  // Every token of the global batch weighs the same, however it is cut into microbatches and ranks. Packed data has no
  // padding, so the count is known before the first microbatch.
  write_if_present(*train_, "loss_scale", 1.0f / static_cast<float>(run_.batch.sequences * run_.batch.seq));
  // The loss that balances experts is a mean over tokens in itself: of every microbatch the same share.
  write_if_present(*train_, "balance_scale", static_cast<float>(microbatch_share()));
  write_if_present(*train_, "lr", static_cast<float>(begun.lr));
  write_if_present(*train_, "step", static_cast<int32_t>(step));
  bool has_loss = counts(*train_, "loss"), has_balance = counts(*train_, "balance_loss");
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    for (const Action& action : unit) {
      // Where ranks talk to each other, the executor writes it, op by op.
      if (rank_status_ && group_.size() == 1)
        rank_status_->begin_action(letter_of(action.region), action.chunk, action.microbatch);
      train_feeder_->before(action, {first_sample + action.microbatch * microbatch_sequences()});
    }
    train_->run(unit, trace);
    bool makes_loss = std::ranges::any_of(unit, [&](const Action& action) {
      return action.region == RegionKind::backward && action.chunk == loss_chunk_;
    });
    if (!makes_loss) return;
    if (std::max(begun.losses.size(), begun.balance_losses.size()) == kOpenLosses) collect_losses(begun);
    if (has_loss) begun.losses.push_back(train_->fetch(program.at("loss")));
    if (has_balance) begun.balance_losses.push_back(train_->fetch(program.at("balance_loss")));
  });
  begun.grad_norm = train_->fetch(program.at("grad_norm"));
}

void Trainer::collect_losses(Begun& begun) {
  for (int64_t ticket : begun.losses) begun.loss += static_cast<double>(train_->collect(ticket));
  begun.losses.clear();
  for (int64_t ticket : begun.balance_losses) begun.balance_loss += static_cast<double>(train_->collect(ticket));
  begun.balance_losses.clear();
}

StepMetrics Trainer::finish_step() {
  Begun& begun = begun_[static_cast<size_t>(steps_finished_++) % begun_.size()];
  collect_losses(begun);
  std::array losses{begun.loss, begun.balance_loss};
  double grad_norm = static_cast<double>(train_->collect(begun.grad_norm));
  group_.sum(losses);
  int64_t batch_tokens = run_.batch.sequences * run_.batch.seq;
  double now = now_s(), seconds = now - std::exchange(last_finish_s_, now);
  return {.step = begun.step,
          .loss = losses[0] / static_cast<double>(batch_tokens),
          .balance_loss = balances_experts_ ? std::optional(losses[1] * microbatch_share()) : std::nullopt,
          .grad_norm = grad_norm,
          .lr = begun.lr,
          .tokens_per_s = static_cast<double>(batch_tokens) / seconds,
          .step_s = seconds,
          .arena_bytes = arena_->bytes()};
}

std::optional<double> Trainer::evaluate() {
  if (!evaluate_) return std::nullopt;
  // The samples are the same for every microbatch and mesh: what the last microbatch has beyond them does not count.
  int64_t samples = measured_samples(run_, *dataset_.validation);
  std::array<double, 2> sums{};  // loss, targets that count
  bool has_loss = counts(*evaluate_, "loss");
  for (int64_t first = 0; first < samples; first += microbatch_sequences()) {
    Feeder::Samples part{first, samples};
    for (const Action& action : evaluate_->program().schedule) {
      if (rank_status_) rank_status_->move_on();
      evaluate_feeder_->before(action, part);
      evaluate_->run(action);
    }
    evaluate_->settle();
    if (has_loss) sums[0] += static_cast<double>(read_value<float>(*evaluate_, evaluate_->program().at("loss")));
    sums[1] += static_cast<double>(evaluate_feeder_->counted_targets(part));
  }
  group_.sum(sums);
  return sums[0] / sums[1];
}

}  // namespace sextant
