// Split patterns of tokenizer.json are written for Oniguruma, the regex engine of HF `tokenizers`; PCRE2 runs them
// here.
#pragma once

#include <string>
#include <string_view>

#include "text/split/code_set.h"

namespace sextant {

// The same pattern in PCRE2's syntax, to be compiled with PCRE2_UTF | PCRE2_MULTILINE and newlines that are \n alone.
struct TranslatedPattern {
  std::string exact;
  std::string quick;  // equal to `exact` on text without any character of quick_is_wrong_on
  CodeSet quick_is_wrong_on;
};

// Every construct is read, and known to be equal or rewritten; UserError at `place` names one that is neither.
TranslatedPattern translate_pattern(std::string_view pattern, std::string_view place);

}  // namespace sextant
