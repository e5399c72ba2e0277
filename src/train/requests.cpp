#include "train/requests.h"

#include <array>

namespace sextant {

Switches::Asked Requests::look() {
  Switches::Asked own = group_.leads() ? switches_.look() : Switches::Asked();
  if (own.save) switches_.save_begins();
  std::array<double, 2> asked{stop_.asked() || own.stop ? 1.0 : 0.0, own.save ? 1.0 : 0.0};
  group_.sum(asked);
  return {.stop = asked[0] > 0, .save = asked[1] > 0};
}

}  // namespace sextant
