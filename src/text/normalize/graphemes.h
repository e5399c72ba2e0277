// Extended grapheme clusters, as far as they matter to charsmaps: those of up to 5 bytes are exact, and of longer ones
// it is certain that they are longer.
#pragma once

#include <cstddef>
#include <string_view>

namespace sextant {

// Where the grapheme that begins at `at` ends. `text` is valid UTF-8 and goes on there.
size_t end_of_grapheme(std::string_view text, size_t at);

// Of two neighbours that are in one grapheme, the first may join the next, or the second the one before it.
bool may_join_next(char32_t code);
bool may_join_previous(char32_t code);

}  // namespace sextant
