#include <algorithm>

#include "app/device.h"
#include "app/verbs.h"
#include "base/error.h"
#include "config/load.h"
#include "plan/programs.h"
#include "train/dataset.h"

namespace sextant {

namespace {

size_t count_lines(std::string_view text, std::string_view start) {
  size_t count = text.starts_with(start) ? 1 : 0;
  std::string needle = "\n" + std::string(start);
  for (size_t at = text.find(needle); at != std::string_view::npos; at = text.find(needle, at + 1)) ++count;
  return count;
}

}  // namespace

void explain_verb(const ExplainArguments& arguments) {
  std::vector<std::string_view> passes = pass_names();
  if (!arguments.after.empty() && std::find(passes.begin(), passes.end(), arguments.after) == passes.end())
    throw UserError({.place = "--after", .got = fmt::format("no pass is called '{}'", arguments.after),
                     .expected = fmt::format("one of {}", fmt::join(passes, ", "))});
  RunConfig run = load_config(arguments.config, arguments.overrides);
  bool table = arguments.after.empty();
  if (table) fmt::print("{:<12}{:>8}{:>8}\n", "after", "ops", "values");
  auto observe = [&](std::string_view pass, const std::function<std::string()>& text) {
    if (pass == arguments.after) fmt::print("{}", text());
    if (table) {
      std::string printed = text();
      fmt::print("{:<12}{:>8}{:>8}\n", pass, count_lines(printed, "op "), count_lines(printed, "value "));
    }
  };
  RunShape shape = run_shape(run, resolve_spec(run));
  build_programs(run, shape, target_for(run, shape.mesh.world_size()), observe);
  if (table) fmt::print("\n`--after PASS` prints the program as it stands there.\n");
}

}  // namespace sextant
