// A config for what a person has: text, a model, a machine. Enters: where they are. Leaves: a commented TOML file that
// `train` and `plan` accept, and a sentence for every choice.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "config/run_config.h"
#include "targets/kernel_needs.h"

namespace sextant {

struct ProposalRequest {
  std::string text;    // a file or folder of text or tokens; empty: the built-in stories
  std::string model;   // a Hugging Face directory or a run to start from; empty: none
  std::string preset;  // a published model; empty: none. With neither, the size is chosen by the amount of text
  std::string device;  // cpu or cuda
  Bytes room;          // for a run on it
  double minutes = 0;  // that training may take; 0: as many passes through the data as are worth it
  // The seconds of a training step of this config here. Called for a few small models when there are minutes to fill.
  std::function<double(const RunConfig& run)> step_seconds;
  std::function<Target(const RunConfig& run)> target;
};

struct Proposal {
  std::string toml;
  std::vector<std::string> reasons;  // "model: 3 layers …"
};

// UserError when there is too little text, DoesNotFit when no setting of the model fits the room.
Proposal propose_config(const ProposalRequest& request);

}  // namespace sextant
