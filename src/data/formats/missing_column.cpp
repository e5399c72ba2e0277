#include "data/formats/missing_column.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sextant {

namespace {

// As many as fit some lines.
std::string columns_shown(const std::vector<std::string>& names) {
  std::string shown;
  for (const std::string& name : names) {
    if (shown.size() > 400) return shown + ", ...";
    shown += (shown.empty() ? "" : ", ") + name.substr(0, 80);
  }
  return shown;
}

}  // namespace

void refuse_missing_column(std::string place, std::string_view column, const std::vector<std::string>& names,
                           std::string expected) {
  throw UserError({.place = std::move(place),
                   .got = fmt::format("there is no column \"{}\"", column),
                   .expected = std::move(expected),
                   .hint = fmt::format("the columns are: {}; data.text_key (or --text-key) names the one with the text",
                                       columns_shown(names))});
}

}  // namespace sextant
