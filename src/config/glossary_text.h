// docs/glossary.md, made a constant by cmake/glossary.cmake.
#pragma once

namespace sextant {

extern const char* const kGlossaryText;

}  // namespace sextant
