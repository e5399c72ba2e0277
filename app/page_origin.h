// Origin that a page states: the command as it was typed, the version and the date.
#pragma once

#include <string>

#include "view/page.h"

namespace sextant {

// "sextant plan CONFIG --machine h200": words that a shell would split or change are quoted.
std::string command_text(int argc, const char* const* argv);

PageOrigin page_origin(std::string model, std::string config, std::string command);

}  // namespace sextant
