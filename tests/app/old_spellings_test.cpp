// Commands of earlier versions are refused with the command that says the same today, in the person's own words.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "expectations.h"

namespace sextant {
namespace {

// The command that the refusal of `old` offers: its last line.
std::string offered(const std::string& old) {
  Outcome outcome = run_command(old);
  EXPECT_EQ(outcome.code, 2) << old << "\n" << outcome.output;
  size_t begin = outcome.output.find("sextant ", outcome.output.find('\n'));
  EXPECT_NE(begin, std::string::npos) << old << "\n" << outcome.output;
  if (begin == std::string::npos) return "";
  return outcome.output.substr(begin, outcome.output.find('\n', begin) - begin);
}

TEST(OldSpellings, AreAnsweredWithThePresentCommand) {
  for (const auto& [old, present] : std::vector<std::pair<std::string, std::string>>{
           {"plan a.toml mesh.tp=2 --machine h200 --search --devices 8",
            "search a.toml mesh.tp=2 --machine h200 --devices 8"},
           {"plan --search a.toml --only 'tp=1,2' --write best.toml -q",
            "search a.toml --only tp=1,2 --write best.toml -q"},
           {"plan a.toml --devices 8 --machine h200", "search a.toml --devices 8 --machine h200"},
           {"plan a.toml --machine h200 --serve --prompt 16", "plan-serving a.toml --machine h200 --prompt 16"},
           {"plan a.toml --context=64 --machine h200", "plan-serving a.toml --context=64 --machine h200"},
           {"plan --compute 1e24 --inference-tokens 10T", "laws --compute 1e24 --inference-tokens 10T"},
           {"plan --tokens 1B", "laws --tokens 1B"},
           {"plan --tokens=1B --json", "laws --tokens=1B --json"},
           {"plan --params 8B --fit 'my runs.csv'", "laws --params 8B --fit 'my runs.csv'"},
           {"plan --validate", "validate"},
           {"plan --validate runs.csv --search", "validate runs.csv --search"},
           {"plan --validate=runs.csv --html v.html", "validate runs.csv --html v.html"},
           {"plan --validate --hold-out --memory --write e.csv", "validate --hold-out --memory --write e.csv"},
           {"plan --calibrate --validate --machine h100-sxm", "validate --calibrate --machine h100-sxm"},
           {"plan --published --json", "published --json"},
           {"plan --published llama3-405b --search --only zero=1", "published llama3-405b --search --only zero=1"},
           {"plan a.toml --machine h200 --stack megatron-2021", "plan a.toml --machine h200 --software megatron-2021"},
           {"plan a.toml --search --stack=nemo-2024", "search a.toml --software=nemo-2024"}}) {
    EXPECT_EQ(offered(old), "sextant " + present) << old;
  }
}

TEST(OldSpellings, NameTheVerb) {
  expect_refusal(run_command("plan --published"), 2, {"sextant: plan: this is the verb published now"});
  expect_refusal(run_command("plan a.toml --stack x"), 2, {"sextant: plan: --stack is an old name of --software"});
}

// A budget of tokens belongs to the plan of a config, wherever it stands.
TEST(OldSpellings, PlansOfAConfigAreNone) {
  std::string tiny = config_path("tiny-llama.toml");
  for (const std::string& line :
       {"plan " + tiny + " --machine h100-sxm --tokens 1B", "plan --tokens 1B --machine h100-sxm " + tiny,
        "plan --machine h100-sxm --json --tokens=1B " + tiny})
    EXPECT_EQ(run_command(line).code, 0) << line;
}

}  // namespace
}  // namespace sextant
