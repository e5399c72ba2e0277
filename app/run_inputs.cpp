#include "app/run_inputs.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sextant {

namespace fs = std::filesystem;

fs::path run_directory(const RunConfig& run, const std::string& config, const std::string& given) {
  if (!given.empty()) return given;
  return fs::path("runs") / (run.name.empty() ? fs::path(config).stem().string() : run.name);
}

std::vector<Fault> faults_of(const std::vector<std::string>& texts, const RunConfig& run) {
  std::vector<Fault> faults;
  for (const std::string& text : texts) {
    faults.push_back(parse_fault(text, "--inject"));
    if (faults.back().step > run.train.steps)
      throw UserError({.place = "--inject " + text,
                       .got = fmt::format("step {} of a run with {}", faults.back().step, run.train.steps),
                       .expected = fmt::format("a step from 1 to {}", run.train.steps)});
  }
  return faults;
}

}  // namespace sextant
