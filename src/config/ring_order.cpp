#include "config/ring_order.h"

#include <fmt/format.h>

#include "ops/fp8_recipe.h"

namespace sextant {

std::string striping_problem(const RunConfig& run, const ModelSpec& spec) {
  if (spec.experts) return "the slots of a token's experts are neighbours, which stripes take apart";
  const Fp8Recipe* recipe = find_fp8_recipe(run.train.precision);
  if (!recipe || recipe->tile == 0) return {};
  return fmt::format("{} scales blocks of neighbouring tokens, which stripes take apart", recipe->name());
}

RingOrder ring_order_of(const RunConfig& run, const ModelSpec& spec) {
  if (run.mesh.ring_order != RingOrder::automatic) return run.mesh.ring_order;
  return run.data.mask_documents && striping_problem(run, spec).empty() ? RingOrder::striped : RingOrder::zigzag;
}

}  // namespace sextant
