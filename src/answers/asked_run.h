// The run that a question is about, given as a config or as the name of a preset, and the devices it would run on. A
// preset becomes a run with a usual batch. `key=value` pairs after it override keys as they do after a config.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "models/spec.h"
#include "plan/prediction_interval.h"
#include "search/layout_limits.h"

namespace sextant {

struct AskedRun {
  std::string name;  // the preset's or the config's
  RunConfig run;
  ModelSpec spec;
  int64_t parameters = 0, active = 0;  // the second: used for each token

  double tokens_per_step() const { return static_cast<double>(run.batch.sequences * run.batch.seq); }
};

// A preset's batch where nothing is said: sequences of at most kUsualSeq tokens, and so many of them or the next
// multiple of the devices.
inline constexpr int64_t kUsualSeq = 4096, kUsualSequences = 1024;

// UserError for what is neither a config nor a preset, and for overrides that do not go together.
AskedRun asked_run(const std::string& model, std::span<const std::string> overrides, int64_t devices);
// The run of a preset that is known to be one.
AskedRun asked_preset(std::string_view preset, std::span<const std::string> overrides, int64_t devices);

struct AskedPlace {
  Machine machine;
  SoftwareProfile profile;
  LayoutLimits limits = {};  // of layouts that are tried
  const IntervalModel* intervals = nullptr;
  std::function<void(std::string_view)> progress = {};

  void say(std::string_view text) const {
    if (progress) progress(text);
  }
};

}  // namespace sextant
