// Characters of each general category in the installed PCRE2. They depend on the Unicode version that the library was
// built with, so the library is asked.
#pragma once

#include <string_view>

#include "text/split/code_set.h"

namespace sextant {

// \p{name} of PCRE2, for a name of one or two letters. The first call takes some milliseconds.
CodeSet pcre_category(std::string_view name);

}  // namespace sextant
