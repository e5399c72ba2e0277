#include "app/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "app/built_with.h"

namespace sextant {

std::string version_text() {
  std::string_view commit = version_commit();
  std::string text = fmt::format("sextant {}", version_number());
  if (!commit.empty()) text += fmt::format(" ({})", commit);
  for (const BuiltWith& part : built_with())
    text += fmt::format("\n{:<10}{}", part.name, part.version.empty() ? "built without" : part.version);
  return text;
}

std::string version_json() {
  using Json = nlohmann::ordered_json;
  Json parts = Json::object();
  for (const BuiltWith& part : built_with())
    parts[part.name] = part.version.empty() ? Json(nullptr) : Json(part.version);
  std::string_view commit = version_commit();
  Json json{{"version", version_number()},
            {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
            {"built_with", std::move(parts)}};
  return json.dump(2);
}

}  // namespace sextant
