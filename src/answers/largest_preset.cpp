#include "answers/largest_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "laws/quantity.h"
#include "models/model.h"
#include "models/presets.h"
#include "search/layout_overrides.h"

namespace sextant {

namespace {

// Of the devices together: whatever is computed in, weights take as much, and where they are streamed from the host,
// the gradients that are kept for the update do.
constexpr double kLeastBytesOfWeight = 2;
// The smallest layout is looked for among few: below this, all are searched before a model is refused.
constexpr double kSurelyTooLarge = 1.25;

struct SizedPreset {
  const Preset* preset = nullptr;
  int64_t parameters = 0;
};

std::vector<SizedPreset> largest_first() {
  std::vector<SizedPreset> all;
  for (const Preset& preset : presets())
    all.push_back({&preset, parameter_count(build_model(preset.spec, {.seq = 1}, single_rank_mesh()))});
  std::ranges::stable_sort(all, std::greater{}, &SizedPreset::parameters);
  return all;
}

// Models of the same shape are refused for the same reason.
auto shape_of(const AskedRun& asked) {
  const ModelSpec& spec = asked.spec;
  return std::tuple(spec.architecture, spec.layers, spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.ffn,
                    spec.vocab, asked.parameters, asked.run.batch.seq);
}

// A quick check, without a search of all layouts, of whether the run is too large.
struct SizeGuess {
  std::string why;  // what a device lacks; empty where the smallest layout fits, or there is none
  bool sure = false;
};

SizeGuess guess_size(const PlanQuestion& q) {
  const Machine& machine = q.place.machine;
  const double room = machine.device.memory_bytes - machine.context_bytes;
  const double weights = kLeastBytesOfWeight * static_cast<double>(q.asked.parameters);
  if (weights > room * static_cast<double>(q.devices))
    return {fmt::format("its weights alone, {}, are more than the devices have together",
                        human(Bytes{static_cast<int64_t>(weights)})),
            true};
  std::optional<Candidate> least = smallest_of(q);
  if (!least || least->fits) return {};
  auto needs = static_cast<double>(least->peak_bytes);
  if (least->fits_device) return {"the memory of the host is too small for its optimizer state", true};
  return {fmt::format("the smallest layout needs {} on a device: {}", human(Bytes{least->peak_bytes}),
                      layout_overrides(q.asked.run, least->config)),
          needs > kSurelyTooLarge * machine.device.memory_bytes};
}

}  // namespace

LargestPreset largest_preset(const LargestQuestion& question) {
  std::vector<RefusedPreset> refused;
  using Shape = decltype(shape_of(std::declval<const AskedRun&>()));
  std::vector<std::pair<Shape, std::string>> known;
  bool any_possible = false;  // else it is the question that is wrong, not the sizes
  const std::vector<SizedPreset> all = largest_first();
  for (const SizedPreset& sized : all) {
    std::string name(sized.preset->name), why;
    SizeGuess guess;
    try {
      AskedRun asked = asked_preset(name, question.overrides, question.devices);
      PlanQuestion q{.asked = asked, .place = question.place, .devices = question.devices, .tokens = question.tokens};
      any_possible = true;
      auto same = std::ranges::find(known, shape_of(asked), &std::pair<Shape, std::string>::first);
      if (same == known.end()) guess = guess_size(q);
      if (same != known.end()) {
        why = same->second;
      } else if (guess.sure) {
        why = guess.why;
      } else {
        question.place.say(fmt::format("{}: searching", name));
        std::optional<PlannedRun> plan = planned_run(q);
        BUG_IF(!plan, "a search without a limit of time found layouts that fit and none of them");
        return {std::move(*plan), std::move(refused)};
      }
      if (same == known.end()) known.emplace_back(shape_of(asked), why);
    } catch (const DoesNotFit& error) {
      why = guess.why.empty() ? error.what() : guess.why;
    } catch (const UserError& error) {
      if (!any_possible && sized.preset == all.back().preset) throw;
      why = error.what();
    }
    question.place.say(fmt::format("{}: {}", name, why));
    refused.push_back({std::move(name), sized.parameters, std::move(why)});
  }
  const RefusedPreset& smallest = refused.back();
  throw DoesNotFit({.place = "ask largest",
                    .got = fmt::format("no preset fits {} × {}; of {}, the smallest: {}", question.devices,
                                       question.place.machine.device.name, smallest.preset, smallest.why),
                    .expected = "more devices, or devices with more memory"});
}

std::string largest_text(const LargestPreset& answer) {
  const PlannedRun& plan = answer.plan;
  std::string text =
      fmt::format("{} ({} parameters) is the largest preset that fits {} × {} ({})\n\n", plan.model,
                  human_quantity(static_cast<double>(plan.parameters)), plan.devices, plan.device, plan.machine) +
      text_of(plan);
  constexpr size_t kTold = 3;
  size_t told = std::min(kTold, answer.refused.size());
  if (told > 0) text += "\nlarger, and refused\n";
  for (size_t i = 0; i < told; ++i) {
    const RefusedPreset& next = answer.refused[answer.refused.size() - 1 - i];
    text += fmt::format("  {} ({}): {}\n", next.preset, human_quantity(static_cast<double>(next.parameters)), next.why);
  }
  if (told < answer.refused.size()) text += fmt::format("  and {} more\n", answer.refused.size() - told);
  return text;
}

nlohmann::ordered_json largest_json(const LargestPreset& answer) {
  nlohmann::ordered_json json{{"answer", json_of(answer.plan)}, {"refused", nlohmann::ordered_json::array()}};
  for (const RefusedPreset& one : answer.refused)
    json["refused"].push_back({{"model", one.preset}, {"parameters", one.parameters}, {"why", one.why}});
  return json;
}

}  // namespace sextant
