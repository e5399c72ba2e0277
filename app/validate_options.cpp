#include "app/validate_options.h"

#include <algorithm>
#include <array>

namespace sextant {

namespace {

constexpr std::array<VerbMode, 4> kModes{{
    {"predict", "the validation of predictions"},
    {"search", "the validation of the search (--search)"},
    {"calibrate", "the calibration (--calibrate)"},
    {"hold_out", "the validation by sources held out (--hold-out)"},
}};

template <class... Modes>
constexpr ModeSet in(Modes... modes) {
  return (0u | ... | (1u << static_cast<unsigned>(modes)));
}

using enum ValidateMode;

constexpr std::array<OptionUse, 9> kOptions{{
    {"file", in(predict, search, calibrate, hold_out)},
    {"--json", in(predict, search)},
    {"--html", in(predict)},
    {"--search", in(search)},
    {"--calibrate", in(calibrate)},
    {"--hold-out", in(hold_out)},
    {"--machine", in(calibrate, hold_out)},
    {"--memory", in(hold_out)},
    {"--write", in(hold_out)},
}};

}  // namespace

const OptionTable& validate_options() {
  static const OptionTable table{kModes, kOptions};
  return table;
}

ValidateMode validate_mode(const std::vector<std::string>& given) {
  auto has = [&](std::string_view option) { return std::ranges::count(given, option) > 0; };
  if (has("--hold-out")) return hold_out;
  if (has("--calibrate")) return calibrate;
  return has("--search") ? search : predict;
}

}  // namespace sextant
