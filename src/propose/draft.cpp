#include "propose/draft.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "config/load.h"

namespace sextant {

void Draft::set(std::string_view key, const ConfigValue& value, std::string why) {
  BUG_IF(!find_key(key), "there is no key {}", key);
  Line line{std::string(key), toml_text(value), std::move(why)};
  auto found = std::ranges::find(lines_, key, &Line::key);
  if (found == lines_.end())
    lines_.push_back(std::move(line));
  else
    *found = std::move(line);
}

std::string Draft::toml(std::string_view heading) const {
  std::string out = fmt::format("# {}\n", heading);
  for (const Section& section : sections()) {
    bool begun = false;
    for (const Line& line : lines_) {
      if (section_of(line.key) != section.name) continue;
      if (!begun) out += section.name.empty() ? "\n" : fmt::format("\n[{}]\n", section.name);
      begun = true;
      if (!line.why.empty()) out += fmt::format("# {}\n", line.why);
      out += fmt::format("{} = {}\n", line.key.substr(section.name.empty() ? 0 : section.name.size() + 1), line.value);
    }
  }
  return out;
}

RunConfig Draft::run() const {
  return parse_config(toml("A draft."), "the proposed config");
}

}  // namespace sextant
