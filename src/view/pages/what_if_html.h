// Effects on a run when one setting changes, as one HTML file: bars of speed and of cost, and a table. Every figure is
// read from the WhatIf.
#pragma once

#include <string>

#include "answers/what_if.h"
#include "view/page.h"

namespace sextant {

struct WhatIfPage {
  const WhatIf& answer;
  PageOrigin origin;
};

std::string what_if_html(const WhatIfPage& page);

}  // namespace sextant
