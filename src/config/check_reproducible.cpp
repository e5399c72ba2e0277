#include "config/check_reproducible.h"

#include <fmt/format.h>

#include "config/microbatches.h"
#include "optim/optimizer.h"

namespace sextant {

void check_reproducible(const RunConfig& run, const ModelSpec& spec, Complaints& complaints) {
  if (!is_reproducible_on_meshes(run)) return;
  const std::string key = "train.reproducible", none = "\"none\"";
  if (spec.experts)
    complaints.add(run, {key, "model.architecture", "model.preset", "model.from"},
                   {.got = "experts are balanced over the sequences of all ranks that go through the model at once",
                    .expected = "a model without experts, or " + none});
  if (const Precision precision = run.train.precision;
      precision != Precision::automatic && precision != Precision::f32 && precision != Precision::bf16)
    complaints.add(run, {key, "train.precision"},
                   {.got = fmt::format("{} scales by what it meets, and gradients are summed in a fixed range",
                                       word_of(precision)),
                    .expected = "train.precision of \"auto\", \"f32\" or \"bf16\", or " + none});
  if (run.train.loss_scale.initial > 0)
    complaints.add(run, {key, "train.loss_scale.initial"},
                   {.got = "gradients of scaled losses do not fit the fixed range in which they are summed",
                    .expected = "train.loss_scale.initial = 0, or " + none});
  // These options read gradients as numbers of one word each; exact sums are f64 (ops/exact_sum.cpp).
  if (run.log.tensor_stats_every > 0)
    complaints.add(run, {key, "log.tensor_stats_every"},
                   {.got = "log.tensor_stats_every is not supported with train.reproducible",
                    .expected = "log.tensor_stats_every = 0, or " + none});
  if (run.log.grad_noise_scale)
    complaints.add(run, {key, "log.grad_noise_scale"},
                   {.got = "log.grad_noise_scale is not supported with train.reproducible",
                    .expected = "log.grad_noise_scale = false, or " + none});
  if (run.offload.optimizer)
    complaints.add(run, {key, "offload.optimizer"},
                   {.got = "exact sums of gradients cannot be copied to the host yet",
                    .expected = "offload.optimizer = false, or " + none});
  if (run.mesh.zero > 0 && find_optimizer(run.optimizer.name)->sums_need_whole_weights)
    complaints.add(run, {key, "mesh.zero", "optimizer.name"},
                   {.got = fmt::format("with ZeRO, the sums of {} depend on where the shards of a weight begin",
                                       run.optimizer.name),
                    .expected = "mesh.zero = 0, another optimizer, or " + none});
}

}  // namespace sextant
