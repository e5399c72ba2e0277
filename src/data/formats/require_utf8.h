// Text that a file states to be UTF-8, held to it.
#pragma once

#include <string>
#include <string_view>

#include "data/formats/document_file.h"
#include "data/text_encoding.h"

namespace sextant {

// `place` gives the text's place, where it is asked for.
template <class Place>
std::string_view require_utf8(std::string_view text, const Place& place) {
  if (auto broken = find_broken_utf8(text))
    throw UnreadableDocument({.place = place(), .got = not_utf8(*broken), .expected = "text in UTF-8"});
  return text;
}

}  // namespace sextant
