// `sextant plan` answers several questions: its modes, and the table of which options each of them uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/option_use.h"

namespace sextant {

enum class PlanMode : uint8_t {
  plan,
  search,
  serve,
  laws,
  validate,
  judge_search,
  calibrate,
  hold_out,
  published,
  search_published
};

const OptionTable& plan_options();

// By the options given; what belongs to another mode beside is then refused by refuse_unused.
PlanMode plan_mode(const std::vector<std::string>& given);

// Whether the option can be answered only with --machine, in a mode that plans a config.
bool needs_machine(const std::string& option);

}  // namespace sextant
