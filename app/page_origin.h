// Origin that a page states: the command as it was typed, the version and the date.
#pragma once

#include <span>
#include <string>

#include "view/page.h"

namespace sextant {

// "sextant plan CONFIG --machine h200": words that a shell would split or change are quoted.
std::string command_text(std::span<const std::string> words);  // those after the program's name

PageOrigin page_origin(std::string model, std::string config, std::string command);

}  // namespace sextant
