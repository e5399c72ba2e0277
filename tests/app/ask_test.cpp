// `sextant ask` as a person uses it: the layout that an answer names is the one that `sextant search` finds, the page
// has the figures of the JSON, and wrong questions are told what is wrong with them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command.h"

namespace sextant {
namespace {

const std::string kOneAxis = " --only tp=1 --only pp=1 --only schedule=1f1b";

TEST(Ask, AnswersWithTheLayoutThatASearchFinds) {
  std::string tiny = config_path("tiny-llama.toml"), where = " --machine h100-sxm --devices 2 --json" + kOneAxis;
  Outcome asked = run_command(fmt::format("ask cost {} --tokens 1B{}", tiny, where));
  Outcome searched = run_command(fmt::format("search {} --tokens 1B{}", tiny, where));
  ASSERT_EQ(asked.code, 0) << asked.output;
  ASSERT_EQ(searched.code, 0) << searched.output;
  auto plan = nlohmann::json::parse(asked.output)["plan"];
  auto best = nlohmann::json::parse(searched.output)["best"][0];
  EXPECT_EQ(plan["overrides"], best["overrides"]);
  EXPECT_EQ(plan["step_s"], best["seconds"]);
  EXPECT_EQ(plan["peak_bytes"], best["peak_bytes"]);
  // The run of a search is printed with ten digits.
  EXPECT_NEAR(plan["run"]["cost"].get<double>() / best["run"]["cost"].get<double>(), 1, 1e-8);
}

TEST(Ask, WritesAPageWithTheFiguresOfTheAnswer) {
  ScratchPlace place("ask");
  std::string page = place / "what-if.html";
  Outcome asked =
      run_command(fmt::format("ask what-if {} --machine h100-sxm --devices 2 --tokens 1B --json{} --change price=x2 "
                              "--change batch.seq=64 --html {}",
                              config_path("tiny-llama.toml"), kOneAxis, page));
  ASSERT_EQ(asked.code, 0) << asked.output;
  std::string html = read_file(page);
  auto json = nlohmann::json::parse(asked.output);
  ASSERT_EQ(json["rows"].size(), 3u);
  for (const auto& row : json["rows"]) {
    ASSERT_FALSE(row["plan"].is_null()) << row;
    EXPECT_NE(html.find(row["change"].get<std::string>()), html.npos);
    EXPECT_NE(html.find(row["plan"]["overrides"].get<std::string>()), html.npos);
    double milliseconds = 1e3 * row["plan"]["step_s"].get<double>();
    ASSERT_LT(milliseconds, 1000);
    EXPECT_NE(html.find(fmt::format("{:.3g} ms", milliseconds)), html.npos) << milliseconds;
  }
  EXPECT_DOUBLE_EQ(json["rows"][1]["cost_ratio"].get<double>(), 2);
  EXPECT_NE(html.find("sextant ask what-if"), html.npos) << "a page says how it was made";
}

TEST(Ask, SaysWhatIsWrongWithAQuestion) {
  struct WrongQuestion {
    std::string arguments;
    int code;
    std::string words;
  };
  std::string gpt2 = "gpt2 --machine h200 --tokens 1B";
  for (const WrongQuestion& wrong : {
           WrongQuestion{"ask", 2, "subcommand"},
           {"ask cost gpt9 --machine h200 --devices 1 --tokens 1B", 2, "neither a file nor a preset"},
           {"ask cost gpt2 --machine abacus --devices 1 --tokens 1B", 2, "abacus"},
           {"ask cost gpt2 --machine h200 --devices 1 --tokens many", 2, "--tokens"},
           {"ask cost gpt2 --machine h200 --devices 1 --tokens 1e30", 2, "between 1 and 1e20"},
           {"ask cost gpt2 --machine h200 --devices 0 --tokens 1B", 2, "--devices"},
           {fmt::format("ask cost {} --devices 1 --only colour=red", gpt2), 2, "--only"},
           {fmt::format("ask devices {} --days 0", gpt2), 2, "--days"},
           {fmt::format("ask devices {} --days 0.000001 --most 8", gpt2), 2, "more than 8 devices"},
           {fmt::format("ask what-if {} --devices 1", gpt2), 2, "--change"},
           {fmt::format("ask what-if {} --devices 1 --change colour=red", gpt2), 2, "nothing that can be changed"},
           {fmt::format("ask what-if {} --devices 1 --change price=cheap", gpt2), 2, "price=cheap"},
           {fmt::format("ask what-if {} --devices 1 --change batch.seq=2048", gpt2), 2, "max_seq"},
           {"ask largest --machine h200 --devices 1 --price 2", 2, "--tokens"},
           {"ask network gpt2 --machine h200", 2, "the run has one rank"},
           {"ask network gpt2 mesh.dp=2 --machine h200 --slow-link 1.5", 2, "--slow-link"},
           {"ask network llama3-70b mesh.dp=2 --machine v100-sxm2", 8, "does not fit"},
           {"ask cost llama3-70b --machine v100-sxm2 --devices 1 --tokens 1B --only recompute=full", 8, "no layout"},
       }) {
    Outcome outcome = run_command(wrong.arguments);
    EXPECT_EQ(outcome.code, wrong.code) << wrong.arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(wrong.words), outcome.output.npos) << wrong.arguments << "\n" << outcome.output;
  }
}

}  // namespace
}  // namespace sextant
