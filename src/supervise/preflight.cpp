#include "supervise/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sextant {

namespace {

std::string finding_word(const nlohmann::json& finding, const char* key) {
  return finding.contains(key) && finding[key].is_string() ? finding[key].get<std::string>() : "";
}

}  // namespace

std::vector<PreflightFinding> preflight_findings(std::string_view text) {
  // mpirun may write lines of its own around it.
  size_t begin = std::min(text.find('{'), text.size()), end = text.rfind('}');
  if (end == std::string_view::npos || end < begin) return {};
  nlohmann::json json = nlohmann::json::parse(text.substr(begin, end + 1 - begin), nullptr, false);
  std::vector<PreflightFinding> found;
  if (!json.is_object() || !json.contains("findings") || !json["findings"].is_array()) return found;
  for (const nlohmann::json& one : json["findings"]) {
    if (!one.is_object()) continue;
    std::string status = finding_word(one, "status"), where = finding_word(one, "where"),
                advice = finding_word(one, "advice");
    if (status != "failure" && status != "warning") continue;
    found.push_back(
        {.text = fmt::format("{}: {}, {}: {}{}{}", status, finding_word(one, "group"), finding_word(one, "name"),
                             finding_word(one, "found"), where.empty() ? "" : fmt::format(", on {}", where),
                             advice.empty() ? "" : fmt::format("; {}", advice)),
         .where = where,
         .is_failure = status == "failure"});
  }
  return found;
}

bool is_about(const PreflightFinding& finding, std::string_view host) {
  auto ends_a_name = [&](size_t at) {
    constexpr std::string_view kBetween = " (),;";
    return at >= finding.where.size() || kBetween.find(finding.where[at]) != std::string_view::npos;
  };
  if (host.empty()) return false;
  for (size_t at = finding.where.find(host); at != std::string::npos; at = finding.where.find(host, at + 1))
    if ((at == 0 || ends_a_name(at - 1)) && ends_a_name(at + host.size())) return true;
  return false;
}

}  // namespace sextant
