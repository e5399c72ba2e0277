// `sextant ask`: questions that people have before a run, each answered by plans of real layouts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "answers/fewest_devices.h"
#include "answers/largest_preset.h"
#include "answers/loss_cost.h"
#include "answers/network_effects.h"
#include "answers/what_if.h"
#include "app/common_options.h"
#include "app/json_output.h"
#include "app/output_file.h"
#include "app/page_origin.h"
#include "app/planned_target.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/verbosity.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"
#include "laws/fit.h"
#include "laws/quantity.h"
#include "view/pages/what_if_html.h"

namespace sextant {

namespace {

// Where it would run, and how the answer is told.
struct AskPlaceOptions {
  TargetOptions target;
  std::vector<std::string> only;  // limits of layouts: "zero=0,1"
  double price = 0;               // dollars for a device-hour; 0: as the machine's file says
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

struct AskLargestArguments {
  AskPlaceOptions place;
  std::vector<std::string> overrides;
  int64_t devices = 0;
  std::string tokens;
};

struct AskDevicesArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  std::string tokens;
  double days = 0;
  int64_t most = 16384;
};

struct AskWhatIfArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  int64_t devices = 0;
  std::string tokens;
  std::vector<std::string> changes;
  std::string report;  // an HTML file to write
};

struct AskCostArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  int64_t devices = 0;
  std::string tokens;
  std::string fit;  // a CSV file of one's own runs
};

struct AskNetworkArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  std::vector<double> slow_links{0.5};
};

constexpr int64_t kMostAskedDevices = int64_t{1} << 20;

void add_asked_model(CLI::App& verb, std::string& model, std::vector<std::string>& overrides) {
  verb.add_option("model", model, "the run's TOML file, or a preset (sextant list models) with a usual batch")
      ->required();
  verb.add_option("overrides", overrides, "key=value pairs of the config, such as batch.seq=8192");
}

void add_asked_machine(CLI::App& verb, AskPlaceOptions& place) {
  add_target_options(verb, place.target)->required();
  verb.add_flag("--json", place.json, "print JSON");
  add_quiet(verb, place.verbosity, "no progress on standard error");
}

void add_asked_place(CLI::App& verb, AskPlaceOptions& place) {
  add_asked_machine(verb, place);
  add_only(verb, place.only);
  verb.add_option("--price", place.price, "dollars for an hour of one device [as the machine's file says]")
      ->check(CLI::Range(1e-6, 1e6));
}

void add_asked_devices(CLI::App& verb, int64_t& devices) {
  verb.add_option("--devices", devices, "how many")->required()->check(CLI::Range(int64_t{1}, kMostAskedDevices));
}

void add_ask_largest_options(CLI::App& verb, AskLargestArguments& a) {
  verb.add_option("overrides", a.overrides, "key=value pairs for every preset, such as batch.seq=8192");
  add_asked_place(verb, a.place);
  add_asked_devices(verb, a.devices);
  CLI::Option* tokens = verb.add_option("--tokens", a.tokens, "to train on: days and cost of the answer");
  verb.get_option("--price")->needs(tokens);
}

void add_ask_devices_options(CLI::App& verb, AskDevicesArguments& a) {
  add_asked_model(verb, a.model, a.overrides);
  add_asked_place(verb, a.place);
  verb.add_option("--tokens", a.tokens, "to train on, such as 1.4T")->required();
  verb.add_option("--days", a.days, "until the run must have ended, with failures and checkpoints")
      ->required()
      ->check(CLI::Range(1e-6, 1e6));
  verb.add_option("--most", a.most, "devices that are tried")
      ->check(CLI::Range(int64_t{1}, kMostAskedDevices))
      ->capture_default_str();
}

void add_ask_what_if_options(CLI::App& verb, AskWhatIfArguments& a) {
  add_asked_model(verb, a.model, a.overrides);
  add_asked_place(verb, a.place);
  add_asked_devices(verb, a.devices);
  verb.add_option("--tokens", a.tokens, "to train on, such as 1.4T")->required();
  verb.add_option(
          "--change", a.changes,
          "machine=b200,h200, software=NAME, devices=128, network=x2 (or GB/s of a node), price=x2 (or dollars), or a "
          "key of the config: batch.seq=16384,32768; a row for each value (may be repeated)")
      ->required()
      ->allow_extra_args(false);
  verb.add_option("--html", a.report, "write the table with pictures as one HTML file")->check(output_file("--html"));
}

void add_ask_cost_options(CLI::App& verb, AskCostArguments& a) {
  add_asked_model(verb, a.model, a.overrides);
  add_asked_place(verb, a.place);
  add_asked_devices(verb, a.devices);
  verb.add_option("--tokens", a.tokens, "to train on, such as 1.4T")->required();
  verb.add_option("--fit", a.fit, "a law fitted to your own runs (CSV: params, tokens, loss) [Besiroglu et al. 2024]");
}

void add_ask_network_options(CLI::App& verb, AskNetworkArguments& a) {
  add_asked_model(verb, a.model, a.overrides);
  add_asked_machine(verb, a.place);
  verb.add_option("--slow-link", a.slow_links, "the rate of one link of each level, as a share (may be repeated) [0.5]")
      ->check(CLI::Range(0.001, 0.999))
      ->allow_extra_args(false);
}

AskedPlace asked_place(const AskPlaceOptions& a, const IntervalModel& intervals) {
  AskedPlace place{
      .machine = load_machine(a.target.machine),
      .profile = a.target.software.empty() ? own_profile() : profile_named(load_profiles(), a.target.software),
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

void run_ask_largest(const AskLargestArguments& a) {
  double tokens = a.tokens.empty() ? 0 : asked_tokens(a.tokens);
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  LargestPreset answer =
      largest_preset({.place = place, .devices = a.devices, .overrides = a.overrides, .tokens = tokens});
  a.place.json ? print_json(largest_json(answer)) : fmt::print("{}", largest_text(answer));
}

void run_ask_devices(const AskDevicesArguments& a) {
  double tokens = asked_tokens(a.tokens);
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  AskedRun asked = asked_run(a.model, a.overrides, 1);
  FewestDevices answer =
      fewest_devices({.asked = asked, .place = place, .tokens = tokens, .days = a.days, .most_devices = a.most});
  a.place.json ? print_json(fewest_json(answer)) : fmt::print("{}", fewest_text(answer));
}

void run_ask_what_if(const AskWhatIfArguments& a, VerbContext& context) {
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
      what_if_html({.answer = answer, .origin = page_origin(answer.rows.front().plan->model, "", context.command)}));
  if (!a.place.json && a.place.verbosity != Verbosity::quiet) fmt::print("written     {}\n", printable(a.report));
}

void run_ask_cost(const AskCostArguments& a) {
  double tokens = asked_tokens(a.tokens);
  ParametricLaw law = law_of(a.fit);
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  AskedRun asked = asked_run(a.model, a.overrides, a.devices);
  LossCost answer =
      loss_cost({.asked = asked, .place = place, .devices = a.devices, .tokens = tokens, .law = std::move(law)});
  a.place.json ? print_json(loss_cost_json(answer)) : fmt::print("{}", loss_cost_text(answer));
}

void run_ask_network(const AskNetworkArguments& a) {
  IntervalModel intervals = load_interval_model();
  AskedPlace place = asked_place(a.place, intervals);
  AskedRun asked = asked_run(a.model, a.overrides, 1);
  NetworkEffects answer = network_effects({.asked = asked, .place = place, .slow_links = a.slow_links});
  a.place.json ? print_json(network_effects_json(answer)) : fmt::print("{}", network_effects_text(answer));
}

constexpr ValueFormat kAskDevicesValues[] = {
    {"DAYS", "days", "--days"},
    {"DEVICES", "devices", "--most"},
};

constexpr ValueFormat kAskWhatIfValues[] = {
    {"CHANGE", "key=value,value, such as devices=64,128", "--change"},
};

constexpr ValueFormat kAskNetworkValues[] = {
    {"SHARE", "", "--slow-link"},
};

}  // namespace

const VerbDef ask_verb{
    .words = "ask",
    .summary = "How large, how many devices, what if, at what cost",
    .details = "Answers by plans of real layouts, also of what the network does",
    .examples = "sextant ask cost gpt2 --machine h200 --devices 8 --tokens 10B --only pp=1 --only tp=1",
    .values = {},
    .declare = nullptr,
};

const VerbDef ask_largest_verb{
    .words = "ask largest",
    .summary = "The largest preset that so many devices can train",
    .details = "It is planned in its fastest layout",
    .examples = "sextant ask largest --machine v100-sxm2 --devices 1 batch.seq=2048",
    .values = {},
    .declare = declare_verb<add_ask_largest_options, run_ask_largest>,
};

const VerbDef ask_devices_verb{
    .words = "ask devices",
    .summary = "How few devices train a model by a deadline",
    .details = "",
    .examples = "sextant ask devices gpt2 --machine h200 --tokens 300B --days 30 --only tp=1",
    .values = kAskDevicesValues,
    .declare = declare_verb<add_ask_devices_options, run_ask_devices>,
};

const VerbDef ask_what_if_verb{
    .words = "ask what-if",
    .summary = "What a longer context, other machine or price changes",
    .details = "A plan each, beside the plan of the model as it is given",
    .examples = "sextant ask what-if gpt2 --machine h200 --devices 8 --tokens 10B --only tp=1 --change price=x2",
    .values = kAskWhatIfValues,
    .declare = declare_verb<add_ask_what_if_options, run_ask_what_if>,
};

const VerbDef ask_cost_verb{
    .words = "ask cost",
    .summary = "What a token and a point of loss cost",
    .details = "By a plan and a scaling law",
    .examples = "sextant ask cost gpt2 --machine h200 --devices 8 --tokens 10B --only pp=1 --only tp=1 --price 3",
    .values = {},
    .declare = declare_verb<add_ask_cost_options, run_ask_cost>,
};

const VerbDef ask_network_verb{
    .words = "ask network",
    .summary = "What the network does to a run",
    .details = "Ranks are placed otherwise, and a link is slower than it should be",
    .examples = "sextant ask network configs/tiny-llama.toml mesh.dp=2 mesh.tp=2 --machine h100-sxm",
    .values = kAskNetworkValues,
    .declare = declare_verb<add_ask_network_options, run_ask_network>,
};

}  // namespace sextant
