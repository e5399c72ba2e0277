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
  std::vector<RunComparison> comparisons;
  for (size_t i = 1; i < sets.size(); ++i)
    comparisons.push_back(
        compare_runs(*sets[0].runs().front(), *sets[i].runs().front(), static_cast<size_t>(a.window)));
  if (a.json) return print_json(nlohmann::ordered_json::parse(comparison_json(comparisons)));
  fmt::print("{}", comparison_text(comparisons));
}

}  // namespace sextant
