#include "app/option_rules.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <type_traits>

#include "app/option_complaints.h"

namespace sextant {

namespace {

template <class Number>
bool fits_number(const std::string& text) {
  errno = 0;
  if constexpr (std::is_signed_v<Number>)
    std::strtoll(text.c_str(), nullptr, 10);
  else
    std::strtoull(text.c_str(), nullptr, 10);
  return errno != ERANGE;
}

}  // namespace

void refuse_numbers_too_large(CLI::App& app) {
  auto validator = [](bool (*fits)(const std::string&)) {
    return CLI::Validator(
        [fits](std::string& text) { return fits(text) ? std::string() : fmt::format("{}{}", text, kTooLarge); }, "");
  };
  for (CLI::Option* option : app.get_options()) {
    std::string type = option->get_type_name();
    if (type.starts_with("INT")) option->check(validator(fits_number<int64_t>));
    if (type.starts_with("UINT")) option->check(validator(fits_number<uint64_t>));
  }
  for (CLI::App* verb : app.get_subcommands(nullptr)) refuse_numbers_too_large(*verb);
}

void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (option->get_expected_max() == 0) option->disable_flag_override();
  for (CLI::App* verb : app.get_subcommands(nullptr)) refuse_values_of_flags(*verb);
}

}  // namespace sextant
