// `watch`, `log` and `compare` as a person runs them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/watch_options.h"
#include "base/files.h"
#include "checkout.h"
#include "expectations.h"
#include "started_command.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using WatchJson = nlohmann::json;

class WatchVerb : public testing::Test {
 protected:
  WatchVerb() : place_("watch") {
    for (const char* name : {"a", "b"}) {
      fs::create_directories(place_.path() / "runs" / name);
      std::string lines;
      for (int step = 1; step <= 60; ++step)
        lines += fmt::format(R"({{"step":{},"loss":{},"lr":{},"tokens":{},"step_s":0.5,"tokens_per_s":200{}}})", step,
                             3.0 + (*name == 'b' ? 0.5 : 0) + 0.01 * (step * 7 % 5), 1e-4 * step, step * step,
                             *name == 'a' ? R"(,"model_flops":2e9)" : "") +
                 "\n";
      write_text(runs() + "/" + name + "/metrics.jsonl", lines);
    }
  }
  std::string runs() const { return place_ / "runs"; }

  ScratchPlace place_;
};

TEST_F(WatchVerb, ServesUntilItIsInterrupted) {
  StartedCommand watch(fmt::format("exec {} watch {} --port 0", checkout::kBinary, runs()), place_ / "log");
  std::smatch found;
  std::string output;
  ASSERT_TRUE(comes_true([&] {
    if (fs::exists(place_ / "log")) output = watch.output();
    return std::regex_search(output, found, std::regex("http://127\\.0\\.0\\.1:([0-9]+)/\n"));
  })) << output;
  watch.send(SIGINT);
  EXPECT_EQ(watch.wait(), 0) << watch.output();
}

TEST_F(WatchVerb, PrintsTheTokenWithTheAddress) {
  Outcome outcome = run_command(fmt::format("watch {} --host 127.0.0.1 --port 0 --stop-after 0.05 --json -q", runs()));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  WatchJson json = WatchJson::parse(outcome.output);
  EXPECT_EQ(json.at("runs"), 2);
  EXPECT_TRUE(std::regex_match(json.at("url").get<std::string>(),
                               std::regex("http://127\\.0\\.0\\.1:[0-9]+/\\?token=[0-9a-f]{32}")))
      << json;
}

TEST_F(WatchVerb, DrawsCurvesInTheTerminal) {
  Outcome all = run_command(fmt::format("watch {} --text --width 50", runs()), "LC_ALL=C");
  EXPECT_EQ(all.code, 0);
  expect_words(all.output,
               {"loss (nats per token): a 3", "loss (nats per token): b 3.5", "lr: a 0.006", "*", "step 1"});
  EXPECT_EQ(all.output.find("⠁"), std::string::npos);
  Outcome one =
      run_command(fmt::format("watch {}/a --text --field lr --x tokens --width 40", runs()), "LC_ALL=C.UTF-8");
  expect_words(one.output, {"lr: a 0.006", "│", "tokens 1", "3600"});
  EXPECT_EQ(one.output.find("loss"), std::string::npos);
  Outcome flops = run_command(fmt::format("watch {} --text --field lr --x flops --width 40", runs()), "LC_ALL=C");
  expect_words(flops.output, {"lr: a 0.006", "flops 2e09", "1.2e11"});
  EXPECT_EQ(flops.output.find("lr: b"), std::string::npos) << "b has no model_flops";
  expect_refusal(run_command(fmt::format("watch {}/b --text --x flops", runs())), 2, {"--x flops", "model_flops"});
  for (const char* line : {"watch {} --text --field unheard", "watch {} --csv x.csv --field unheard"})
    expect_refusal(run_command(fmt::format(fmt::runtime(line), runs())), 2,
                   {"--field unheard", "no run has this field"});
}

TEST_F(WatchVerb, WritesTheFilesItIsAskedFor) {
  Outcome page = run_command(fmt::format("watch {} --html {}", runs(), place_ / "page.html"));
  EXPECT_EQ(page.output, (place_ / "page.html") + "\n");
  expect_words(read_file(place_ / "page.html"), {"<!DOCTYPE html>", "\"series\":{\"1\":{\"loss\":{\"step\":[1,"});
  EXPECT_EQ(run_command(fmt::format("watch {} --csv {} --field lr", runs(), place_ / "runs.csv")).code, 0);
  std::string table = read_file(place_ / "runs.csv");
  EXPECT_TRUE(table.starts_with("run,step,tokens,seconds,flops,lr\na,1,1,0.500,2000000000,0.0001\n"))
      << table.substr(0, 200);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 121);
  Outcome events = run_command(fmt::format("watch {} --tensorboard {} --json", runs(), place_ / "tb"));
  EXPECT_EQ(WatchJson::parse(events.output), (WatchJson{{"file", place_ / "tb"}, {"runs", 2}}));
  EXPECT_GT(fs::file_size(place_ / "tb/a/events.out.tfevents.0.sextant"), 1000u);
}

TEST_F(WatchVerb, RefusesOptionsThatAModeDoesNotUse) {
  std::map<WatchMode, std::string> bases{{WatchMode::serve, ""},
                                         {WatchMode::text, "--text"},
                                         {WatchMode::export_page, "--html FILE"},
                                         {WatchMode::csv, "--csv FILE"},
                                         {WatchMode::tensorboard, "--tensorboard FILE"},
                                         {WatchMode::forward, "--forward wandb"}};
  std::map<std::string, std::string> values{
      {"--port", "0"},   {"--host", "127.0.0.1"},   {"--stop-after", "0.01"}, {"--field", "loss"},
      {"--x", "tokens"}, {"--width", "50"},         {"--text", ""},           {"--html", "FILE"},
      {"--csv", "FILE"}, {"--tensorboard", "FILE"}, {"--forward", "wandb"},   {"--json", ""}};
  ASSERT_EQ(bases.size(), watch_options().modes.size());
  for (const auto& [mode, base] : bases)
    for (const OptionUse& use : watch_options().options) {
      std::string option(use.option);
      if (use.modes >> static_cast<size_t>(mode) & 1) continue;
      if (mode == WatchMode::serve && !values.at(option).empty() && values.at(option) == "FILE")
        continue;  // another mode
      if (mode == WatchMode::serve && (option == "--text" || option == "--forward")) continue;
      std::string line = fmt::format("watch {} {} {} {}", runs(), base, option, values.at(option));
      line = std::regex_replace(line, std::regex("FILE"), place_ / "file");
      expect_refusal(run_command(line), 2, {option});
      EXPECT_FALSE(fs::exists(place_ / "file")) << line;
    }
}

// With a module of the same calls in place of the service's.
TEST_F(WatchVerb, ForwardsToAService) {
  write_text(place_ / "wandb.py",
             "import json, os\n"
             "class Run:\n"
             "  def note(self, *what):\n"
             "    print(json.dumps(what), file=open(os.environ['FORWARDED'], 'a'))\n"
             "  def log(self, numbers, step): self.note('log', step, numbers)\n"
             "  def alert(self, title, text): self.note('alert', title, text)\n"
             "  def finish(self): self.note('finish')\n"
             "def init(name, id, config, resume, reinit):\n"
             "  run = Run()\n"
             "  run.note('init', name, config)\n"
             "  return run\n");
  write_text(runs() + "/a/config.toml", "[optimizer]\nlr = 0.5\n");
  write_text(runs() + "/a/events.jsonl",
             R"({"time":"2026-11-17T18:04:00.000Z","event":"finish","step":60,"text":"all is done"})"
             "\n");
  std::string environment = fmt::format("PYTHONPATH={} FORWARDED={}", place_ / "", place_ / "forwarded");
  Outcome outcome = run_command(fmt::format("watch {}/a --forward wandb", runs()), environment);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "1 run forwarded to wandb\n");
  std::string lines = read_file(place_ / "forwarded");
  expect_words(lines,
               {R"(["init", "a", {"optimizer.lr": 0.5}])", R"(["log", 1, {"loss": 3.02, "lr": 0.0001, "tokens": 1,)",
                R"(["log", 60, {)", R"(["alert", "finish", "all is done"])", R"(["finish"])"});
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 63);
  Outcome missing = run_command(fmt::format("watch {}/a --forward mlflow", runs()), "PYTHONPATH=/nowhere");
  EXPECT_NE(missing.code, 0);
  expect_words(missing.output, {"--forward mlflow", "pip install mlflow"});
}

TEST_F(WatchVerb, SaysWhatIsNoRun) {
  expect_refusal(run_command("watch /nowhere/at/all"), 2, {"/nowhere/at/all", "directory not found"});
  expect_refusal(run_command(fmt::format("watch {}/a/metrics.jsonl", runs())), 2, {"is not a directory"});
  fs::create_directories(place_.path() / "empty");
  expect_refusal(run_command(fmt::format("watch {} --text", place_ / "empty")), 2, {"no run found", "metrics.jsonl"});
  expect_refusal(run_command(fmt::format("log {}", runs())), 2, {"a folder of several runs"});
  expect_refusal(run_command(fmt::format("log {} --note x", place_ / "empty")), 2, {"not a run's directory"});
  expect_refusal(run_command(fmt::format("compare {0}/a {1}", runs(), place_ / "empty")), 2, {"not a run's directory"});
  expect_refusal(run_command(fmt::format("compare {0}/a", runs())), 2, {"directories"});
  expect_refusal(run_command(fmt::format("log {0}/a --note ''", runs())), 2, {"--note", "empty"});
  expect_refusal(run_command(fmt::format("log {0}/a --note x --html {1}", runs(), place_ / "x.html")), 2,
                 {"--note", "--html"});
}

TEST_F(WatchVerb, NotesBecomeLinesOfTheLog) {
  std::string run = runs() + "/a";
  EXPECT_EQ(run_command(fmt::format("log {} --note 'lr | halved *here*'", run)).code, 0);
  Outcome log = run_command("log " + run);
  expect_words(log.output, {"# a\n", " at step 60, after 3,600 tokens and 30.0 s of steps, with a loss of 3.00",
                            ": **note**: lr \\| halved \\*here\\*\n"});
  EXPECT_EQ(WatchJson::parse(run_command(fmt::format("log {} --json", run)).output).at("events").at(0).at("text"),
            "lr | halved *here*");
  EXPECT_EQ(run_command(fmt::format("log {} --html {}", run, place_ / "log.html")).code, 0);
  expect_words(read_file(place_ / "log.html"), {"<polyline", "lr | halved *here*", "step time"});
}

TEST_F(WatchVerb, ComparesRunsWithTheFirst) {
  Outcome text = run_command(fmt::format("compare {0}/a {0}/b {0}/a", runs()));
  EXPECT_EQ(text.code, 0);
  expect_words(text.output, {"b is worse than a at 3,600 tokens: +0.5000 in loss", "a is not different from a",
                             "configs not compared: a has no config.toml"});
  WatchJson json = WatchJson::parse(run_command(fmt::format("compare {0}/a {0}/b --window 10 --json", runs())).output);
  EXPECT_EQ(json.at("comparisons").at(0).at("verdict"), "worse");
  EXPECT_EQ(json.at("comparisons").at(0).at("equal_tokens").at("a").at("steps"), 10);
}

}  // namespace
}  // namespace sextant
