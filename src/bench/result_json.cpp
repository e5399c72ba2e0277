#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/result.h"

namespace sextant {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostResults = 100'000, kMostSamples = 100'000;

Json summary_json(const Summary& s) {
  return {{"calls", s.count}, {"mean", s.mean},     {"median", s.median}, {"best", s.best},
          {"worst", s.worst}, {"spread", s.spread}, {"low", s.low},       {"high", s.high}};
}

// Reads one report and says where it stands when something is not as it should be.
class ReportReader {
 public:
  explicit ReportReader(std::string_view place) : place_(place) {}

  BenchReport read(const Json& json) {
    BenchReport report;
    for (const auto& [name, value] : object(json, "environment").items())
      report.environment.emplace_back(name, text(value, "environment." + name));
    const Json& results = list(json, "results");
    if (results.size() > kMostResults) refuse("results", fmt::format("{} of them", results.size()), "at most 100,000");
    for (size_t i = 0; i < results.size(); ++i)
      report.results.push_back(result(results[i], fmt::format("results[{}]", i)));
    if (json.contains("findings"))
      for (const Json& finding : list(json, "findings")) report.findings.push_back(text(finding, "findings"));
    if (auto at = json.find("interrupted"); at != json.end()) {
      if (!at->is_boolean()) refuse("interrupted", at->type_name(), "true or false");
      report.interrupted = at->get<bool>();
    }
    return report;
  }

  [[noreturn]] void refuse(const std::string& where, const std::string& got, const std::string& expected) const {
    throw UserError({.place = fmt::format("{}: {}", place_, where),
                     .got = "got " + got,
                     .expected = expected,
                     .hint = "`sextant bench … --json` prints such a file"});
  }

 private:
  const Json& member(const Json& json, const std::string& name) const {
    if (!json.is_object()) refuse(name, json.type_name(), "an object that holds it");
    auto at = json.find(name);
    if (at == json.end()) refuse(name, "nothing", "this member");
    return *at;
  }
  const Json& object(const Json& json, const std::string& name) const {
    const Json& found = member(json, name);
    if (!found.is_object()) refuse(name, found.type_name(), "an object");
    return found;
  }
  const Json& list(const Json& json, const std::string& name) const {
    const Json& found = member(json, name);
    if (!found.is_array()) refuse(name, found.type_name(), "a list");
    return found;
  }
  std::string text(const Json& json, const std::string& where) const {
    if (!json.is_string()) refuse(where, json.type_name(), "a text");
    return json.get<std::string>();
  }
  double number(const Json& json, const std::string& where) const {
    double value = json.is_number() ? json.get<double>() : -1;
    if (!(value >= 0 && std::isfinite(value)))
      refuse(where, json.dump().substr(0, 40), "a number that is not negative");
    return value;
  }
  std::vector<double> numbers(const Json& json, const std::string& where) const {
    if (!json.is_array() || json.size() > kMostSamples)
      refuse(where, json.type_name(), "a list of at most 100,000 numbers");
    std::vector<double> numbers;
    for (const Json& each : json) numbers.push_back(number(each, where));
    return numbers;
  }

  BenchResult result(const Json& json, const std::string& where) const {
    auto at = [&](const char* name) -> const Json& { return member(json, name); };
    return {.kind = text(at("kind"), where + ".kind"),
            .name = text(at("name"), where + ".name"),
            .shape = text(at("shape"), where + ".shape"),
            .dtype = text(at("dtype"), where + ".dtype"),
            .size = numbers(at("size"), where + ".size"),
            .samples = numbers(at("samples"), where + ".samples"),
            .flops = number(at("flops"), where + ".flops"),
            .bytes = number(at("bytes"), where + ".bytes"),
            .peak_share = number(at("peak_share"), where + ".peak_share"),
            .error = number(at("error"), where + ".error")};
  }

  std::string place_;
};

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json changes = Json::array();
  for (const Change& change : comparison.changes)
    changes.push_back({{"result", change.key},
                       {"before_s", change.before},
                       {"after_s", change.after},
                       {"p", change.p},
                       {"beyond_noise", change.certain}});
  return Json{{"changes", changes},
              {"only_in_first", comparison.gone},
              {"only_in_second", comparison.added},
              {"environment", comparison.environment}}
             .dump(1) +
         "\n";
}

std::string report_json(const BenchReport& report) {
  Json environment = Json::object(), results = Json::array();
  for (const auto& [name, value] : report.environment) environment[name] = value;
  for (const BenchResult& r : report.results)
    results.push_back({{"kind", r.kind},
                       {"name", r.name},
                       {"shape", r.shape},
                       {"dtype", r.dtype},
                       {"size", r.size},
                       {"flops", r.flops},
                       {"bytes", r.bytes},
                       {"flops_per_s", r.flops_per_s()},
                       {"bytes_per_s", r.bytes_per_s()},
                       {"peak_share", r.peak_share},
                       {"error", r.error},
                       {"seconds", summary_json(r.seconds())},
                       {"samples", r.samples}});
  Json json{{"environment", environment},
            {"results", results},
            {"findings", report.findings},
            {"interrupted", report.interrupted}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

BenchReport parse_report(std::string_view text, std::string_view place) {
  Json json;
  ReportReader reader(place);
  // Depth is bounded before the parser, which recurses when it frees what it made.
  constexpr int kMostDeep = 32;
  auto depth_is_sound = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostDeep) throw std::length_error("nested too deep");
    return true;
  };
  try {
    json = Json::parse(text, depth_is_sound);
  } catch (const Json::parse_error& error) {
    reader.refuse(fmt::format("byte {}", error.byte), "no JSON", "a report of `sextant bench`");
  } catch (const std::length_error& error) {
    reader.refuse("the text", error.what(), "a report of `sextant bench`");
  } catch (const Json::exception& error) {
    reader.refuse("the text", error.what(), "a report of `sextant bench`");
  }
  return reader.read(json);
}

}  // namespace sextant
