// What the PCRE2 at hand takes for each general category. It depends on the Unicode version that the library was built
// with, so it is asked.
#pragma once

#include <string_view>

#include "text/split/code_set.h"

namespace sextant {

// \p{name} of PCRE2, for a name of one or two letters. The first call takes some milliseconds.
CodeSet pcre_category(std::string_view name);

}  // namespace sextant
