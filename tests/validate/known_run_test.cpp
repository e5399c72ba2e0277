// The runs that everybody knows: the list and the configs belong together, and their figures are those of the page.
#include "validate/known_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/program_folder.h"

namespace sextant {
namespace {

std::string problem_of(const std::string& text) {
  try {
    parse_known_runs(text, "list.toml", program_folder("configs") / "published");
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(KnownRuns, EveryConfigIsListed) {
  std::set<std::string> listed, there;
  for (const KnownRun& run : read_known_runs()) {
    listed.insert(run.config.stem().string());
    EXPECT_TRUE(run.known == "read" || run.known == "recalled") << run.name;
    EXPECT_EQ(run.date.size(), 7u) << run.name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(program_folder("configs") / "published"))
    there.insert(entry.path().stem().string());
  EXPECT_EQ(listed, there);
}

TEST(KnownRuns, WhatIsWrongWithTheListIsSaid) {
  EXPECT_NE(problem_of("[none]\nstep_s = 1\n").find("there is no"), std::string::npos);
  EXPECT_NE(problem_of("[mt-nlg-530b]\nabout = \"x\"\n").find("nothing measured"), std::string::npos);
  EXPECT_NE(problem_of("[mt-nlg-530b]\nstep_s = -1\n").find("a number above 0"), std::string::npos);
  EXPECT_NE(problem_of("[mt-nlg-530b]\ncounted = \"twice\"\n").find("causal, full or executed"), std::string::npos);
  EXPECT_NE(problem_of("[mt-nlg-530b]\nsteps = 1\n").find("an unknown key"), std::string::npos);
  EXPECT_NE(problem_of("[rung]\nlike = \"mt-nlg-530b\"\nafter = \"none\"\n").find("a run further up"),
            std::string::npos);
  EXPECT_NE(problem_of("[mt-nlg-530b]\noverrides = [\"batch.seq=1\"]\n").find("like = "), std::string::npos);
  EXPECT_NE(problem_of("[rung]\nlike = \"mt-nlg-530b\"\noverrides = [1]\n").find("key=value"), std::string::npos);
  EXPECT_THROW(read_known_runs("no such run"), UserError);
}

// docs/published-runs.md has what `sextant published` prints. A few of its lines are made again here.
TEST(KnownRuns, FiguresAreThoseOfThePage) {
  std::string page = read_file(program_folder("docs") / "published-runs.md");
  for (const char* name : {"megatron-2021-gpt-3b", "mt-nlg-530b", "playbook-9b-16", "llama3-405b-16384"}) {
    std::vector<KnownRunResult> results = plan_known_runs(read_known_runs(name), load_interval_model());
    std::string text = known_runs_text(results);
    size_t begin = text.find(fmt::format("\n{} ", name)) + 1;
    constexpr size_t kColumns = 93;  // up to the interval, which every new file of held-out errors changes
    std::string line = text.substr(begin, kColumns);
    EXPECT_NE(page.find(line), std::string::npos) << "not in docs/published-runs.md:\n" << line;
  }
}

// MegaScale's ablation (arXiv 2402.15627, table 3): what each of its eight additions gains, within three points.
TEST(KnownRuns, MegaScalesLadderIsMet) {
  std::vector<KnownRunResult> results = plan_known_runs(read_known_runs("megascale-ladder"), load_interval_model());
  std::vector<KnownRung> rungs = known_rungs(results);
  ASSERT_EQ(rungs.size(), 8u);
  EXPECT_NEAR(rungs.front().measured, 4.6, 0.05);
  EXPECT_NEAR(rungs.back().measured, 3.0, 0.05);
  for (const KnownRung& rung : rungs) {
    EXPECT_NEAR(rung.tables, rung.measured, 3) << rung.run->run.name;
    EXPECT_NEAR(rung.fitted, rung.measured, 3) << rung.run->run.name;
  }
}

// Meta's three measurements (arXiv 2407.21783, table 4), from published tables and facts alone, and fitted on other
// runs. None of those has sequences of 131,072 tokens: there the fit is 9.3 % too fast, a known shortfall, and is held
// to not getting worse.
TEST(KnownRuns, LlamaThreeIsNear) {
  for (const KnownRunResult& run : plan_known_runs(read_known_runs("llama3-405b"), load_interval_model())) {
    EXPECT_LT(std::abs(run.tables_error()), 0.08) << run.run.name;
    const double most = run.run.name.ends_with("131k") ? 0.095 : 0.075;
    EXPECT_LT(std::abs(run.fitted_error()), most) << run.run.name;
  }
}

}  // namespace
}  // namespace sextant
