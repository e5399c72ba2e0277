#include <fmt/format.h>

#include "app/verbs.h"
#include "models/listing.h"

namespace sextant {

void models_verb() {
  fmt::print("{}", list_of_models());
}

}  // namespace sextant
