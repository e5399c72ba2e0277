// `sextant ask`: questions that people have before a run, each answered by plans of real layouts.
#include "app/ask.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "answers/fewest_devices.h"
#include "answers/largest_preset.h"
#include "answers/loss_cost.h"
#include "answers/network_effects.h"
#include "answers/what_if.h"
#include "app/json_output.h"
#include "app/page_origin.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"
#include "laws/fit.h"
#include "laws/quantity.h"
#include "view/pages/what_if_html.h"

namespace sextant {

namespace {

AskedPlace asked_place(const AskPlaceOptions& a, const IntervalModel& intervals) {
  AskedPlace place{.machine = load_machine(a.machine),
                   .profile = a.profile.empty() ? own_profile() : profile_named(load_profiles(), a.profile),
                   .limits = LayoutLimits(a.only, "--only"),
                   .intervals = &intervals};
  if (a.price > 0) place.machine.price_per_hour = a.price;
  if (!a.json && a.verbosity != Verbosity::quiet)
    place.progress = [](std::string_view text) { fmt::print(stderr, "{}\n", printable(text)); };
  return place;
}

// Tokens of a run: more than any corpus there is would be a mistake.
double asked_tokens(const std::string& text) {
  double tokens = parse_quantity(text, "--tokens");
  if (!(tokens >= 1 && tokens <= 1e20))
    throw UserError({.place = "--tokens", .got = fmt::format("{:g}", tokens), .expected = "between 1 and 1e20"});
  return tokens;
}

ParametricLaw law_of(const std::string& fit) {
  return fit.empty() ? besiroglu() : fit_law(runs_from_csv(read_file(fit), fit), fit).law;
}

}  // namespace

void ask_largest_verb(const AskLargestArguments& a) {
  double tokens = a.tokens.empty() ? 0 : asked_tokens(a.tokens);
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  LargestPreset answer =
      largest_preset({.place = place, .devices = a.devices, .overrides = a.overrides, .tokens = tokens});
  a.place.json ? print_json(largest_json(answer)) : fmt::print("{}", largest_text(answer));
}

void ask_devices_verb(const AskDevicesArguments& a) {
  double tokens = asked_tokens(a.tokens);
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  AskedRun asked = asked_run(a.model, a.overrides, 1);
  FewestDevices answer =
      fewest_devices({.asked = asked, .place = place, .tokens = tokens, .days = a.days, .most_devices = a.most});
  a.place.json ? print_json(fewest_json(answer)) : fmt::print("{}", fewest_text(answer));
}

void ask_what_if_verb(const AskWhatIfArguments& a) {
  double tokens = asked_tokens(a.tokens);
  std::vector<QuestionChange> changes = changes_of(a.changes, "--change");
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  WhatIf answer = what_if({.base = {.model = a.model, .overrides = a.overrides, .place = place, .devices = a.devices},
                           .tokens = tokens,
                           .changes = changes});
  a.place.json ? print_json(what_if_json(answer)) : fmt::print("{}", what_if_text(answer));
  if (a.report.empty()) return;
  write_file_atomically(
      a.report,
      what_if_html({.answer = answer, .origin = page_origin(answer.rows.front().plan->model, "", a.command)}));
  if (!a.place.json && a.place.verbosity != Verbosity::quiet) fmt::print("written     {}\n", printable(a.report));
}

void ask_cost_verb(const AskCostArguments& a) {
  double tokens = asked_tokens(a.tokens);
  ParametricLaw law = law_of(a.fit);
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  AskedRun asked = asked_run(a.model, a.overrides, a.devices);
  LossCost answer =
      loss_cost({.asked = asked, .place = place, .devices = a.devices, .tokens = tokens, .law = std::move(law)});
  a.place.json ? print_json(loss_cost_json(answer)) : fmt::print("{}", loss_cost_text(answer));
}

void ask_network_verb(const AskNetworkArguments& a) {
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  AskedRun asked = asked_run(a.model, a.overrides, 1);
  NetworkEffects answer = network_effects({.asked = asked, .place = place, .slow_links = a.slow_links});
  a.place.json ? print_json(network_effects_json(answer)) : fmt::print("{}", network_effects_text(answer));
}

}  // namespace sextant
