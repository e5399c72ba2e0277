// Compares two configs of one run key by key: the values that a checkpoint keeps of its config, and the keys that a
// resumed run changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/affects.h"
#include "config/run_config.h"

namespace sextant {

// Every key that has a value, as it would stand in the file.
using ConfigValues = std::map<std::string, std::string, std::less<>>;
ConfigValues config_values(const RunConfig& run);

struct ConfigChange {
  std::string key;
  std::string before, after;  // "unset" for no value
  Affects affects = Affects::result;

  std::string text() const;  // "optimizer.lr 0.001 -> 0.002"
};

// In the order of the schema. A key that this version does not know is none of its changes.
std::vector<ConfigChange> changes_between(const ConfigValues& before, const ConfigValues& after);

}  // namespace sextant
