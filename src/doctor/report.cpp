#include "doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace sextant {

namespace {

using nlohmann::ordered_json;

constexpr int kNameWidth = 24;

std::string_view mark_of(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warning:
      return "WARNING";
    case Health::failure:
      return "FAILURE";
    case Health::unknown:
      return "unknown";
  }
  return "";
}

std::string marked(Health health, Colours colours) {
  std::string mark = fmt::format("{:<8}", mark_of(health));
  switch (health) {
    case Health::ok:
      return styled(mark, TextStyle::good, colours);
    case Health::warning:
      return styled(mark, TextStyle::doubtful, colours);
    case Health::failure:
      return styled(mark, TextStyle::bad, colours);
    case Health::unknown:
      break;
  }
  return mark;
}

size_t count(const std::vector<Finding>& findings, Health health) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [health](const Finding& f) { return f.health == health; }));
}

std::string plural(size_t n, const std::string& word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

std::string summary(const std::vector<Finding>& findings) {
  size_t failures = count(findings, Health::failure), warnings = count(findings, Health::warning);
  size_t unknown = count(findings, Health::unknown);
  std::string text =
      failures > 0   ? fmt::format("not fit to train: {}, {}", plural(failures, "failure"), plural(warnings, "warning"))
      : warnings > 0 ? fmt::format("fit to train, with {}", plural(warnings, "warning"))
                     : "fit to train";
  return text + (unknown > 0 ? fmt::format("; {} could not be read", plural(unknown, "thing")) : "");
}

ordered_json json_of(const Finding& f) {
  return {{"group", f.group}, {"name", f.name},     {"status", name_of(f.health)},
          {"found", f.found}, {"advice", f.advice}, {"where", f.where}};
}

std::string dumped(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false,
                   ordered_json::error_handler_t::replace);  // names of files and machines may be no UTF-8
}

Health health_from(std::string_view name) {
  for (Health health : {Health::ok, Health::warning, Health::failure})
    if (name == name_of(health)) return health;
  return Health::unknown;
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, Colours colours) {
  std::string text, group;
  for (const Finding& f : findings) {
    if (f.group != group) text += fmt::format("{}{}\n", group.empty() ? "" : "\n", printable(f.group));
    group = f.group;
    text += fmt::format("  {} {:<{}} {}{}\n", marked(f.health, colours), printable(f.name), kNameWidth,
                        printable(f.found, Newlines::kept), f.where.empty() ? "" : " · on " + printable(f.where));
    if (!f.advice.empty())
      text += fmt::format("  {:<8} {:<{}} → {}\n", "", "", kNameWidth, printable(f.advice, Newlines::kept));
  }
  return text + "\n" + summary(findings) + "\n";
}

std::string findings_json(const std::vector<Finding>& findings) {
  ordered_json json{{"fit", exit_code_of(findings) == ExitCode::finished},
                    {"failures", count(findings, Health::failure)},
                    {"warnings", count(findings, Health::warning)},
                    {"unknown", count(findings, Health::unknown)},
                    {"findings", ordered_json::array()}};
  for (const Finding& f : findings) json["findings"].push_back(json_of(f));
  return escaped_json(dumped(json, 2)) + "\n";
}

ExitCode exit_code_of(const std::vector<Finding>& findings) {
  return count(findings, Health::failure) > 0 ? ExitCode::unhealthy : ExitCode::finished;
}

std::string pack_examination(const RankExamination& rank) {
  ordered_json json{
      {"rank", rank.rank}, {"host", rank.host}, {"findings", ordered_json::array()}, {"facts", ordered_json::array()}};
  for (const Finding& f : rank.exam.findings) json["findings"].push_back(json_of(f));
  for (const Fact& fact : rank.exam.facts) json["facts"].push_back({fact.name, fact.value});
  return dumped(json, -1);
}

RankExamination unpack_examination(const std::string& text) {
  auto json = nlohmann::json::parse(text);
  RankExamination rank{json["rank"], json["host"], {}};
  for (const auto& f : json["findings"])
    rank.exam.findings.push_back(
        {f["group"], f["name"], health_from(f["status"].get<std::string>()), f["found"], f["advice"], f["where"]});
  for (const auto& fact : json["facts"]) rank.exam.facts.push_back({fact[0], fact[1]});
  return rank;
}

}  // namespace sextant
