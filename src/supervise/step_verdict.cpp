#include "supervise/step_verdict.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

std::string word_of(const nlohmann::json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t whole_of(const nlohmann::json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

std::string document_text_of(const nlohmann::json& json) {
  auto found = json.find("document");
  if (found == json.end() || !found->is_object()) return "";
  std::string text = word_of(*found, "file");
  if (int64_t document = whole_of(*found, "document"); document >= 0) text += fmt::format(": document {}", document);
  if (auto source = found->find("source"); source != found->end() && source->is_object())
    text += fmt::format(" ({}:{})", word_of(*source, "file"), whole_of(*source, "record"));
  if (int64_t token = whole_of(*found, "token"); token >= 0) text += fmt::format(", token {}", token);
  return text;
}

std::string found_text(const ReplayFacts& facts) {
  if (facts.first_op.empty()) return "";
  return fmt::format("; first in {}{}", facts.first_op,
                     facts.document.empty() ? "" : fmt::format(", at {}", facts.document));
}

}  // namespace

std::optional<ReplayFacts> parse_replay(std::string_view text) {
  size_t begin = text.find('{');
  if (begin == text.npos) return std::nullopt;
  auto json = nlohmann::json::parse(text.substr(begin), nullptr, false);
  if (!json.is_object() || !json.contains("executions") || !json["executions"].is_array() || json["executions"].empty())
    return std::nullopt;
  ReplayFacts facts;
  for (const nlohmann::json& execution : json["executions"]) {
    if (!execution.is_object()) return std::nullopt;
    for (const char* key : {"loss", "grad_norm"})
      facts.finite = facts.finite && execution.contains(key) && execution[key].is_number();
  }
  facts.agree = word_of(json, "verdict") != "persistent";
  if (!json.contains("bisect") || !json["bisect"].is_object()) return facts;
  auto first = json["bisect"].find("non_finite");
  if (first == json["bisect"].end() || !first->is_object()) return facts;
  facts.layer = whole_of(*first, "layer");
  facts.first_op =
      fmt::format("{} ({}){} on rank {}", word_of(*first, "op"), word_of(*first, "kind"),
                  facts.layer < 0 ? "" : fmt::format(", layer {},", facts.layer), whole_of(*first, "rank"));
  facts.document = document_text_of(*first);
  return facts;
}

std::string_view StepVerdict::name() const {
  switch (cause) {
    case CauseKind::transient_fault:
      return "transient";
    case CauseKind::faulty_device:
      return "persistent";
    case CauseKind::reproducible_non_finite:
      return "reproducible";
    default:
      return "unknown";
  }
}

RunEvent StepVerdict::event() const {
  RunEvent event{.kind = EventKind::verdict, .step = step, .text = text, .details = {{"verdict", std::string(name())}}};
  if (!facts.first_op.empty()) event.details.set("op", facts.first_op);
  if (facts.layer >= 0) event.details.set("layer", facts.layer);
  if (!facts.document.empty()) event.details.set("document", facts.document);
  return event;
}

StepVerdict judge_step(int64_t step, const std::optional<ReplayFacts>& here, std::string_view where,
                       const std::optional<ReplayFacts>& there, std::string_view elsewhere) {
  StepVerdict verdict{.step = step};
  auto say = [&](CauseKind cause, std::string_view what) {
    verdict.cause = cause;
    verdict.text = fmt::format("step {}: {}: {}{}", step, verdict.name(), what, found_text(verdict.facts));
    return verdict;
  };
  if (!here) return say(CauseKind::non_finite, "the step could not be run again in time; its output is beside run.log");
  verdict.facts = *here;
  if (!here->agree)
    return say(CauseKind::faulty_device,
               fmt::format("two executions {} differ from one another: the hardware, or a kernel that is not "
                           "deterministic",
                           where));
  if (here->finite)
    return say(
        CauseKind::transient_fault,
        fmt::format("run again {} it is finite: the hardware failed once; sextant doctor --burn tests it", where));
  if (!there)
    return say(
        CauseKind::reproducible_non_finite,
        fmt::format("it is not finite again {}: data or software, or hardware that always fails; there is no other "
                    "device to tell them apart",
                    where));
  if (there->finite)
    return say(CauseKind::faulty_device,
               fmt::format("it is not finite again {}, and finite {}: the hardware, or what only its kernels do", where,
                           elsewhere));
  return say(CauseKind::reproducible_non_finite,
             fmt::format("it is not finite again {}, and neither {}: data or software", where, elsewhere));
}

std::optional<int64_t> first_non_finite_step(const fs::path& out) {
  std::error_code ignored;
  if (!fs::exists(out / "metrics.jsonl", ignored)) return std::nullopt;
  std::istringstream lines(read_file(out / "metrics.jsonl"));
  std::optional<int64_t> first;
  for (std::string text; std::getline(lines, text);) {
    auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || whole_of(line, "step") < 1) continue;
    if (!line.contains("non_finite"))
      first.reset();
    else if (!first)
      first = whole_of(line, "step");
  }
  return first;
}

}  // namespace sextant
