#include "train/evaluator.h"

#include <array>

#include "config/microbatches.h"
#include "train/counted_part.h"
#include "train/step_totals.h"

namespace sextant {

Evaluator::Evaluator(const Parts& parts) : parts_(parts), bound_(parts.executor.bind(parts.program, parts.arena)) {
  auto feeder = [&](const BatchSampler& sampler) {
    return std::make_unique<Feeder>(*bound_, sampler, parts.dataset.end_of_text,
                                    static_cast<uint64_t>(parts.run.train.seed));
  };
  if (parts.dataset.validation) validation_ = feeder(*parts.dataset.validation);
  training_ = feeder(parts.dataset.train);
}

void Evaluator::add_part(Feeder& feeder, const Feeder::Samples& part, Sums& sums) {
  for (const Action& action : bound_->program().schedule) {
    if (parts_.rank_status) parts_.rank_status->move_on();
    feeder.before(action, part);
    bound_->run(action);
  }
  bound_->settle();
  const Program& program = bound_->program();
  if (const Value* loss = program.find("loss"); loss && counts_part(program, bound_->rank(), *loss)) {
    auto term = static_cast<double>(read_value<float>(*bound_, *loss));
    sums.loss += is_reproducible_on_meshes(parts_.run) ? exact_term(term) : term;
  }
  sums.targets += static_cast<double>(feeder.counted_targets(part));
}

Evaluator::Sums Evaluator::over_ranks(const Sums& sums) {
  std::array<double, 2> joined{sums.loss, sums.targets};
  parts_.group.sum(joined);
  return {joined[0], joined[1]};
}

std::optional<double> Evaluator::evaluate() {
  if (!validation_) return std::nullopt;
  // The samples are the same for every microbatch and mesh: those of the last microbatch after them do not count.
  int64_t samples = measured_samples(parts_.run, *parts_.dataset.validation);
  int64_t microbatch = parts_.run.batch.microbatch * bound_->program().mesh.ranks(AxisRole::data);
  Sums sums;
  for (int64_t first = 0; first < samples; first += microbatch) add_part(*validation_, {first, samples}, sums);
  sums = over_ranks(sums);
  return sums.loss / sums.targets;
}

std::optional<double> Evaluator::measure(const Feeder::Samples& samples) {
  Sums sums;
  add_part(*training_, samples, sums);
  sums = over_ranks(sums);
  return sums.targets > 0 ? std::optional(sums.loss / sums.targets) : std::nullopt;
}

}  // namespace sextant
