#include <CLI/CLI.hpp>

#include "app/ask.h"
#include "app/output_file.h"
#include "app/verbosity_options.h"

namespace sextant {

namespace {

constexpr int64_t kMostAskedDevices = int64_t{1} << 20;

void add_asked_model(CLI::App& verb, std::string& model, std::vector<std::string>& overrides) {
  verb.add_option("model", model, "the run's TOML file, or a preset (sextant list models) with a usual batch")
      ->required();
  verb.add_option("overrides", overrides, "key=value pairs of the config, such as batch.seq=8192");
}

void add_asked_machine(CLI::App& verb, AskPlaceOptions& place) {
  verb.add_option("--machine", place.machine, "what it runs on: a name of machines/ or a TOML file")->required();
  verb.add_option("--software", place.profile,
                  "whose software runs it, a name of machines/software.toml [sextant's own]");
  verb.add_flag("--json", place.json, "print JSON");
  add_quiet(verb, place.verbosity, "no progress on standard error");
}

void add_asked_place(CLI::App& verb, AskPlaceOptions& place) {
  add_asked_machine(verb, place);
  verb.add_option("--only", place.only, "limits layouts, such as zero=0,1 tp=4,8, as of plan (may be repeated)")
      ->allow_extra_args(false);
  verb.add_option("--price", place.price, "dollars for an hour of one device [as the machine's file says]")
      ->check(CLI::Range(1e-6, 1e6));
}

void add_asked_devices(CLI::App& verb, int64_t& devices) {
  verb.add_option("--devices", devices, "how many")->required()->check(CLI::Range(int64_t{1}, kMostAskedDevices));
}

void add_largest(CLI::App& ask, AskLargestArguments& a) {
  CLI::App* verb = ask.add_subcommand(
      "largest", "The largest preset that can be trained on so many devices, and its fastest layout");
  verb->add_option("overrides", a.overrides, "key=value pairs for every preset, such as batch.seq=8192");
  add_asked_place(*verb, a.place);
  add_asked_devices(*verb, a.devices);
  CLI::Option* tokens = verb->add_option("--tokens", a.tokens, "to train on: days and cost of the answer");
  verb->get_option("--price")->needs(tokens);
  verb->callback([&a] { ask_largest_verb(a); });
}

void add_devices(CLI::App& ask, AskDevicesArguments& a) {
  CLI::App* verb = ask.add_subcommand("devices", "How few devices train a model on so many tokens by a deadline");
  add_asked_model(*verb, a.model, a.overrides);
  add_asked_place(*verb, a.place);
  verb->add_option("--tokens", a.tokens, "to train on, such as 1.4T")->required();
  verb->add_option("--days", a.days, "until the run must have ended, with failures and checkpoints")
      ->required()
      ->check(CLI::Range(1e-6, 1e6));
  verb->add_option("--most", a.most, "devices that are tried")
      ->check(CLI::Range(int64_t{1}, kMostAskedDevices))
      ->capture_default_str();
  verb->callback([&a] { ask_devices_verb(a); });
}

void add_what_if(CLI::App& ask, AskWhatIfArguments& a) {
  CLI::App* verb =
      ask.add_subcommand("what-if", "What a longer context, another machine, network or price changes, plan by plan");
  add_asked_model(*verb, a.model, a.overrides);
  add_asked_place(*verb, a.place);
  add_asked_devices(*verb, a.devices);
  verb->add_option("--tokens", a.tokens, "to train on, such as 1.4T")->required();
  verb->add_option(
          "--change", a.changes,
          "machine=b200,h200, software=NAME, devices=128, network=x2 (or GB/s of a node), price=x2 (or dollars), or a "
          "key of the config: batch.seq=16384,32768; a row for each value (may be repeated)")
      ->required()
      ->allow_extra_args(false);
  verb->add_option("--html", a.report, "write the table with pictures as one HTML file")->check(output_file("--html"));
  verb->callback([&a] { ask_what_if_verb(a); });
}

void add_cost(CLI::App& ask, AskCostArguments& a) {
  CLI::App* verb = ask.add_subcommand("cost", "What a token and a point of loss cost, by a plan and a scaling law");
  add_asked_model(*verb, a.model, a.overrides);
  add_asked_place(*verb, a.place);
  add_asked_devices(*verb, a.devices);
  verb->add_option("--tokens", a.tokens, "to train on, such as 1.4T")->required();
  verb->add_option("--fit", a.fit, "a law fitted to your own runs (CSV: params, tokens, loss) [Besiroglu et al. 2024]");
  verb->callback([&a] { ask_cost_verb(a); });
}

void add_network(CLI::App& ask, AskNetworkArguments& a) {
  CLI::App* verb = ask.add_subcommand(
      "network", "What the network does to a run: ranks placed otherwise, and a link that is slower than it should be");
  add_asked_model(*verb, a.model, a.overrides);
  add_asked_machine(*verb, a.place);
  verb->add_option("--slow-link", a.slow_links,
                   "the rate of one link of each level, as a share (may be repeated) [0.5]")
      ->check(CLI::Range(0.001, 0.999))
      ->allow_extra_args(false);
  verb->callback([&a] { ask_network_verb(a); });
}

}  // namespace

void add_ask(CLI::App& app, AskArguments& a) {
  CLI::App* ask = app.add_subcommand(
      "ask", "Answers by plans: how large, how many devices, what if, what it costs, what the network does");
  ask->require_subcommand(1);
  add_largest(*ask, a.largest);
  add_devices(*ask, a.devices);
  add_what_if(*ask, a.what_if);
  add_cost(*ask, a.cost);
  add_network(*ask, a.network);
}

}  // namespace sextant
