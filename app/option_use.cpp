#include "app/option_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace sextant {

const OptionUse& OptionTable::use_of(std::string_view option) const {
  auto found = std::ranges::find(options, option, &OptionUse::option);
  BUG_IF(found == options.end(), "the table of options does not say where {} is used", option);
  return *found;
}

void refuse_unused(const OptionTable& table, size_t mode, const std::vector<std::string>& given) {
  std::vector<Complaint> complaints;
  for (const std::string& option : given) {
    ModeSet used = table.use_of(option).modes;
    if (used >> mode & 1) continue;
    std::vector<std::string_view> users;
    for (size_t i = 0; i < table.modes.size(); ++i)
      if (used >> i & 1) users.push_back(table.modes[i].about);
    complaints.push_back({.place = option,
                          .got = fmt::format("is given, but {} does not use it", table.modes[mode].about),
                          .hint = fmt::format("leave it out; it is for {}", fmt::join(users, ", "))});
  }
  if (!complaints.empty()) throw UserError(std::move(complaints));
}

}  // namespace sextant
