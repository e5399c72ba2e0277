#include "config/ring_order.h"

#include <fmt/format.h>

#include "ops/fp8_recipe.h"

namespace sextant {

std::string against_stripes(const RunConfig& run) {
  const Fp8Recipe* recipe = find_fp8_recipe(run.train.precision);
  if (!recipe || recipe->tile == 0) return {};
  return fmt::format("{} scales blocks of neighbouring tokens, which stripes take apart", recipe->name);
}

RingOrder ring_order_of(const RunConfig& run) {
  if (run.mesh.ring_order == "zigzag") return RingOrder::zigzag;
  if (run.mesh.ring_order == "striped") return RingOrder::striped;
  return run.data.mask_documents && against_stripes(run).empty() ? RingOrder::striped : RingOrder::zigzag;
}

}  // namespace sextant
