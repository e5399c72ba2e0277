// The options of `sextant ask` and its questions, one struct and one function each; ask_options.cpp puts them on the
// command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/verbosity.h"

namespace CLI {
class App;
}

namespace sextant {

// Where it would run, and how the answer is told.
struct AskPlaceOptions {
  std::string machine;
  std::string profile;            // empty: ours
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
void ask_largest_verb(const AskLargestArguments& arguments);

struct AskDevicesArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  std::string tokens;
  double days = 0;
  int64_t most = 16384;
};
void ask_devices_verb(const AskDevicesArguments& arguments);

struct AskWhatIfArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  int64_t devices = 0;
  std::string tokens;
  std::vector<std::string> changes;
  std::string report;   // an HTML file to write
  std::string command;  // all that was typed
};
void ask_what_if_verb(const AskWhatIfArguments& arguments);

struct AskCostArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  int64_t devices = 0;
  std::string tokens;
  std::string fit;  // a CSV file of one's own runs
};
void ask_cost_verb(const AskCostArguments& arguments);

struct AskNetworkArguments {
  AskPlaceOptions place;
  std::string model;
  std::vector<std::string> overrides;
  std::vector<double> slow_links{0.5};
};
void ask_network_verb(const AskNetworkArguments& arguments);

struct AskArguments {
  AskLargestArguments largest;
  AskDevicesArguments devices;
  AskWhatIfArguments what_if;
  AskCostArguments cost;
  AskNetworkArguments network;
};

void add_ask(CLI::App& app, AskArguments& arguments);

}  // namespace sextant
