// `sextant compare`: runs beside the first of them.
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/printable.h"
#include "watch/run_comparison.h"
#include "watch/run_set.h"

namespace sextant {

void compare_verb(const CompareArguments& a) {
  std::vector<RunSet> sets;
  for (const std::string& directory : a.directories) {
    RunSet& set = sets.emplace_back(std::vector<std::filesystem::path>{directory});
    set.read_all();
    if (set.runs().size() != 1)
      throw UserError({.place = printable(directory),
                       .got = set.runs().empty() ? "not a run's directory" : "a folder of several runs",
                       .expected = "the directory of one run (train --out)"});
  }
  std::vector<const WatchedRun*> runs;
  for (const RunSet& set : sets) runs.push_back(set.runs().front().get());
  std::vector<RunComparison> comparisons = compare_with_first(runs, static_cast<size_t>(a.window));
  if (a.json) return print_json(nlohmann::ordered_json::parse(comparison_json(comparisons)));
  fmt::print("{}", comparison_text(comparisons));
}

}  // namespace sextant
