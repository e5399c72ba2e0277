// Options that every verb has: --json, --quiet and --verbose, and a page that documents them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/help_tree.h"
#include "base/files.h"
#include "checkout.h"
#include "expectations.h"

namespace sextant {
namespace {

std::vector<HelpPage> verbs_that_do_something() {
  std::vector<HelpPage> pages;
  for (HelpPage& page : help_tree())
    if (page.verbs.empty()) pages.push_back(std::move(page));
  return pages;
}

bool has_option(const HelpPage& page, const std::string& option) {
  return std::ranges::count(page.options, option) == 1;
}

// The rows of a table in docs/json.md that begin with the verb, under this heading.
bool is_in_table(const std::string& heading, const std::string& words) {
  static const std::string text = read_file(fmt::format("{}/docs/json.md", checkout::kSources));
  size_t begin = text.find(heading);
  EXPECT_NE(begin, text.npos) << heading;
  std::string section = text.substr(begin, text.find("\n## ", begin + 1) - begin);
  std::string group = words.substr(0, words.find(' ')) + " …";
  return section.find(fmt::format("| `{}`", words)) != section.npos ||
         section.find(fmt::format("| `{}`", group)) != section.npos;
}

bool prints_no_json(const std::string& words) {
  return is_in_table("## Without --json", words);
}

TEST(EveryVerb, HasTheCommonOptions) {
  std::vector<HelpPage> pages = verbs_that_do_something();
  EXPECT_GT(pages.size(), 20u);
  for (const HelpPage& page : pages) {
    for (const char* option : {"-q", "--quiet", "-v", "--verbose"})
      EXPECT_TRUE(has_option(page, option)) << page.words << " has no " << option;
    EXPECT_NE(has_option(page, "--json"), prints_no_json(page.words))
        << page.words << " needs --json, or a reason under Without --json in docs/json.md";
    EXPECT_TRUE(prints_no_json(page.words) || is_in_table("# Output for scripts", page.words))
        << page.words << " is not in docs/json.md";
  }
}

// A command line for each verb, as small as it can be.
class EveryVerbOutput : public testing::Test {
 protected:
  static std::map<std::string, std::string> commands(const ScratchPlace& place) {
    std::string tiny = config_path("tiny-llama.toml"), run = place / "run", text = place / "my.txt",
                tokenizer = place / "tokenizer.json", result = place / "gemm.json",
                data = fmt::format(" data.cache={} data.stories_bytes=60000", place / "cache"),
                small = " model.layers=1", fast = " --device cpu --threads 1 --seconds 0.001";
    return {
        {"new", "new --preset gpt2 --minutes 0"},
        {"train", tiny_train(place, "train.steps=2")},
        {"run", fmt::format("run {}", tiny_train(place, "train.steps=2").substr(std::string("train ").size()))},
        {"sweep", fmt::format("sweep {} {} train.steps=2,3 train.eval_every=0 --out {}", tiny, data, place / "sweep")},
        {"replay", fmt::format("replay {} --step 2 --bisect --ops --documents", run)},
        {"generate", fmt::format("generate {} --prompt One --max-tokens 3", run)},
        {"data train-tokenizer", fmt::format("data train-tokenizer {} --vocab 300 --out {}", text, tokenizer)},
        {"data tokenize", fmt::format("data tokenize {} --tokenizer {} --out {}", text, tokenizer, place / "my.bin")},
        {"data inspect", "data inspect " + text},
        {"data trace", fmt::format("data trace {} --step 1", run)},
        {"data order", fmt::format("data order {} --samples 3 {}", tiny, data)},
        {"plan", fmt::format("plan {} --machine h100-sxm", tiny)},
        {"search", fmt::format("search {} --machine h100-sxm --devices 2 --only tp=1", tiny)},
        {"plan-serving", fmt::format("plan-serving {} --machine h100-sxm", tiny)},
        {"laws", "laws --params 1B"},
        {"validate", fmt::format("validate {}/tests/fuzz/seeds/published.csv", checkout::kSources)},
        {"published", "published playbook-3b-8"},
        {"ask largest", "ask largest --machine v100-sxm2 --devices 1 batch.seq=512 --only recompute=full" + small},
        {"ask devices", "ask devices gpt2 --machine h200 --tokens 10B --days 30 --only tp=1" + small},
        {"ask what-if",
         "ask what-if gpt2 --machine h200 --devices 1 --tokens 10B --only recompute=full --change price=x2" + small},
        {"ask network", "ask network gpt2 mesh.dp=2 --machine h200" + small},
        {"ask cost", "ask cost gpt2 --machine h200 --devices 1 --tokens 10B --only recompute=full" + small},
        {"explain", "explain " + tiny},
        {"launch", fmt::format("launch {} --slurm", tiny)},
        {"bench gemm", "bench gemm --shape 256x256x256" + fast},
        {"bench attention", "bench attention --length 16 --heads 1 --head-dim 8 --tokens 16" + fast},
        {"bench ops", "bench ops --only rms_norm" + fast},
        {"bench sizing", fmt::format("bench sizing {} --vary vocab=512", tiny) + fast},
        {"bench compare", fmt::format("bench compare {0} {0}", result)},
        {"bench report", fmt::format("bench report {} --html {}", result, place / "gemm.html")},
        {"bench comm", "bench comm --ranks 2 --device cpu --min 1024 --max 1024 --calls 1 --op broadcast"},
        {"bench storage", fmt::format("bench storage {} --gb 0.001", place.path().string())},
        {"watch", fmt::format("watch {} --text", run)},
        {"log", "log " + run},
        {"compare", fmt::format("compare {0} {0}", run)},
        {"list", "list schedules"},
        {"doctor", "doctor " + place.path().string()},
        {"help", "help train"},
        {"man", "man train"},
        {"completions", "completions bash"},
        {"schema", "schema"},
    };
  }

  // Makes the files that other verbs read.
  static void prepare(const ScratchPlace& place, const std::map<std::string, std::string>& command) {
    write_text(place / "my.txt", "One day a cat sat on a mat. The cat was glad.\n");
    for (const char* verb : {"train", "data train-tokenizer"}) {
      Outcome outcome = run_command(command.at(verb));
      ASSERT_EQ(outcome.code, 0) << outcome.output;
    }
    ASSERT_EQ(run_command(command.at("bench gemm") + " --json > " + (place / "gemm.json")).code, 0);
  }

  static bool ended_well(const std::string& words, int code) {
    return code == 0 || (words == "doctor" && code == 1);  // an unfit machine
  }
};

const std::vector<std::string> kResultIsAFile = {"data tokenize", "data train-tokenizer", "bench report"};

TEST_F(EveryVerbOutput, QuietIsTheResultAloneAndJsonOneDocument) {
  ScratchPlace place("every-verb");
  std::map<std::string, std::string> command = commands(place);
  prepare(place, command);
  for (const HelpPage& page : verbs_that_do_something()) {
    // They take long, and print by the same function as the other benchmarks.
    if (page.words == "bench machine" || page.words == "bench memory") continue;
    ASSERT_TRUE(command.contains(page.words)) << "no command to try " << page.words << " with";
    const std::string& line = command.at(page.words);
    Outcome quiet = run_command(fmt::format("{} -q 2> {}", line, place / "errors"));
    EXPECT_TRUE(ended_well(page.words, quiet.code)) << line << "\n" << quiet.output << read_file(place / "errors");
    EXPECT_EQ(read_file(place / "errors"), "") << line;
    EXPECT_EQ(quiet.output.empty(), std::ranges::count(kResultIsAFile, page.words) > 0) << line << quiet.output;
    if (prints_no_json(page.words)) continue;
    Outcome json = run_command(fmt::format("{} --json 2> {}", line, place / "errors"));
    EXPECT_TRUE(ended_well(page.words, json.code)) << line << "\n" << json.output << read_file(place / "errors");
    EXPECT_TRUE(nlohmann::json::accept(json.output)) << line << "\n" << json.output.substr(0, 2000);
  }
}

TEST_F(EveryVerbOutput, VerboseSaysWhatWasUsed) {
  ScratchPlace place("verbose");
  Outcome outcome = run_command("list schedules -v 2>&1 > /dev/null");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(std::regex_match(outcome.output, std::regex("took .+, [0-9.]+ MiB of memory at most\n")))
      << outcome.output;
  expect_refusal(run_command("list schedules -q -v"), 2, {"--quiet", "--verbose"});
}

TEST_F(EveryVerbOutput, JsonHoldsWhatTheTextSays) {
  using Json = nlohmann::json;
  ScratchPlace place("json-values");
  std::map<std::string, std::string> command = commands(place);
  write_text(place / "my.txt", "One day a cat sat on a mat. The cat was glad.\n");

  Outcome trained = run_command(command.at("data train-tokenizer") + " --json");
  ASSERT_EQ(trained.code, 0) << trained.output;
  EXPECT_EQ(Json::parse(trained.output).at("file"), place / "tokenizer.json");
  size_t vocabulary = Json::parse(read_file(place / "tokenizer.json")).at("model").at("vocab").size();
  EXPECT_EQ(Json::parse(trained.output).at("tokens"), vocabulary);

  Json tokens = Json::parse(run_command(command.at("data tokenize") + " --json").output);
  EXPECT_EQ(tokens.at("documents"), 1);
  EXPECT_EQ(tokens.at("text_bytes"), std::filesystem::file_size(place / "my.txt"));
  EXPECT_EQ(tokens.at("tokens").get<size_t>() * 2, std::filesystem::file_size(place / "my.bin"));  // u16 each
  EXPECT_EQ(tokens.at("skipped").at("count"), 0);

  std::string launch = fmt::format("launch {} mesh.dp=2 --mpi --ranks-per-node 1", config_path("tiny-llama.toml"));
  Json job = Json::parse(run_command(launch + " --json").output);
  EXPECT_EQ(job.at("text"), run_command(launch).output);
  EXPECT_EQ(job.at("ranks"), 2);
  EXPECT_EQ(job.at("nodes"), 2);
  EXPECT_EQ(job.at("launcher"), "mpirun");

  Json proposed = Json::parse(run_command("new --preset gpt2 --minutes 0 --json").output);  // nothing is timed
  EXPECT_EQ(proposed.at("config"), run_command("new --preset gpt2 --minutes 0 -q").output);
  EXPECT_FALSE(proposed.at("reasons").empty());

  Json help = Json::parse(run_command("help bench gemm --json").output);
  EXPECT_EQ(help.at("verb"), "bench gemm");
  std::vector<std::string> named;
  for (const Json& option : help.at("options"))
    for (const Json& name : option.at("names")) named.push_back(name);
  for (const std::string& option : help_page("bench gemm").options)
    EXPECT_EQ(std::ranges::count(named, option), 1) << option;
}

TEST(EveryVerb, HelpOfAKeyIsThatOfItsRow) {
  std::string help = run_command("help train.recompute").output;
  EXPECT_EQ(help.substr(0, help.find('\n')), "train.recompute");
  EXPECT_NE(help.find("latent"), help.npos) << help;
  EXPECT_NE(help.find("default: \"none\""), help.npos) << help;
  const auto keys = nlohmann::json::parse(run_command("help model.rope_scaling --json").output);
  EXPECT_GE(keys.size(), 5u);
  EXPECT_EQ(keys.at(0).at("key"), "model.rope_scaling.type");
  expect_refusal(run_command("help train.recompile"), 2, {"train.recompile"});
}

TEST(EveryVerb, HelpIsThatOfTheOption) {
  for (const HelpPage& page : help_tree())
    EXPECT_EQ(run_command("help " + page.words).output, run_command(page.words + " --help").output) << page.words;
}

}  // namespace
}  // namespace sextant
