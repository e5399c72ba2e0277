// The ways in which `sextant watch` shows runs, and the table of which options each of them uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/option_use.h"

namespace sextant {

enum class WatchMode : uint8_t { serve, text, export_page, csv, tensorboard, forward };

const OptionTable& watch_options();

// UserError where several are chosen.
WatchMode watch_mode(const std::vector<std::string>& given);

}  // namespace sextant
