#include "app/common_options.h"

#include "laws/quantity.h"

namespace sextant {

void add_config(CLI::App& verb, std::string& config, std::vector<std::string>& overrides) {
  verb.add_option("config", config, "the run's TOML file (docs/config.md lists every key)")->required();
  verb.add_option("overrides", overrides, "key=value pairs that take the place of the file's, such as train.steps=50");
}

CLI::Option* add_device(CLI::App& verb, std::string& device, const std::string& about) {
  return verb.add_option("--device", device, about)
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
}

CLI::Option* add_only(CLI::App& verb, std::vector<std::string>& limits) {
  return verb
      .add_option("--only", limits,
                  "limits layouts, such as zero=0,1 schedule=1f1b tp=4,8; also dp, pp, cp, zero_ranks, chunks, "
                  "microbatch, sequence_parallel, recompute (may be repeated)")
      ->allow_extra_args(false);
}

CLI::Option* add_imbalance(CLI::App& verb, std::string& imbalance) {
  return verb.add_option("--imbalance", imbalance,
                         "how tokens go to the ranks of experts: balanced, the busiest rank's ratio to the mean, or a "
                         "run's metrics.jsonl");
}

std::optional<double> given_quantity(const std::string& text, const char* option) {
  return text.empty() ? std::nullopt : std::optional(parse_quantity(text, option));
}

}  // namespace sextant
