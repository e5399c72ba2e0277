// No option is passed over: in every mode of a verb, every option either changes the answer or is refused by name. The
// cases are made from the verbs' own tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>

#include "app/launch_options.h"
#include "app/plan_options.h"
#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "command.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using Given = std::map<std::string, std::string>;  // option -> its value; "" for a flag

const std::string kWrites = "FILE";  // stands for a file in the test's scratch place

std::string seed_path(const std::string& name) {
  return fmt::format("{}/tests/fuzz/seeds/{}", checkout::kSources, name);
}

struct VerbCase {
  std::string verb;
  const OptionTable& table;
  size_t (*mode_of)(const std::vector<std::string>& given);
  std::vector<Given> bases;  // what chooses each mode, in the table's order
  Given samples;             // a value for each option, other than the base's
};

std::vector<std::string> names_of(const Given& given) {
  std::vector<std::string> names;
  for (const auto& [name, value] : given) names.push_back(name);
  return names;
}

const VerbCase& plan_case() {
  static const std::string tiny = config_path("tiny-llama.toml"), published = seed_path("published.csv");
  static const VerbCase plan{
      .verb = "plan",
      .table = plan_options(),
      .mode_of = [](const std::vector<std::string>& given) { return static_cast<size_t>(plan_mode(given)); },
      .bases = {{{"config", tiny}, {"--machine", "h100-sxm"}},
                {{"config", tiny}, {"--machine", "h100-sxm"}, {"--search", ""}},
                {{"config", tiny}, {"--machine", "h100-sxm"}, {"--serve", ""}, {"--prompt", "16"}},
                {{"--fit", seed_path("runs.csv")}, {"--params", "1B"}},
                {{"--validate", published}},
                {{"--validate", published}, {"--search", ""}},
                {{"--validate", published}, {"--calibrate", ""}},
                {{"--validate", published}, {"--hold-out", ""}},
                {{"--published", "playbook-3b-8"}},
                {{"--published", "playbook-3b-8"}, {"--search", ""}, {"--only", "microbatch=1"}}},
      .samples = {{"config", config_path("tiny-gpt2.toml")},
                  {"overrides", "model.layers=1"},
                  {"--json", ""},
                  {"--machine", "a100-40-sxm"},
                  {"--software", "megatron-2021"},
                  {"--html", kWrites},
                  {"--vary", "batch.seq=16"},
                  {"--layouts", "1"},
                  {"--trace", kWrites},
                  {"--timeline", kWrites},
                  {"--memory-timeline", kWrites},
                  {"--mesh", kWrites},
                  {"--straggler", "2"},
                  {"--jitter", "0.5"},
                  {"--imbalance", "1.5"},
                  {"--search", ""},
                  {"--only", "recompute=full"},
                  {"--devices", "2"},
                  {"--headroom", "5%"},
                  {"--write", kWrites},
                  {"--serve", ""},
                  {"--prompt", "8"},
                  {"--context", "48"},
                  {"--validate", seed_path("runs.csv")},
                  {"--calibrate", ""},
                  {"--hold-out", ""},
                  {"--memory", ""},
                  {"--published", "playbook-9b-16"},
                  {"--tokens", "1B"},
                  {"--compute", "1e20"},
                  {"--params", "2B"},
                  {"--inference-tokens", "1T"},
                  {"--fit", seed_path("runs_flops.csv")}}};
  return plan;
}

const VerbCase& launch_case() {
  static const std::string tiny = config_path("tiny-llama.toml");
  static const VerbCase launch{
      .verb = "launch",
      .table = launch_options(),
      .mode_of = [](const std::vector<std::string>& given) { return static_cast<size_t>(launch_mode(given)); },
      .bases = {{{"config", tiny}, {"--slurm", ""}, {"--cpus-per-rank", "2"}},
                {{"config", tiny}, {"--mpi", ""}},
                {{"config", tiny}, {"--mpi", ""}, {"--container", "image.sif"}},
                {{"config", tiny}, {"--mpi", ""}, {"--without-ssh", ""}},
                {{"config", tiny}, {"--kubernetes", ""}, {"--container", "image"}}},
      .samples = {{"config", config_path("tiny-gpt2.toml")},
                  {"overrides", "mesh.dp=2"},
                  {"--slurm", ""},
                  {"--mpi", ""},
                  {"--kubernetes", ""},
                  {"--ranks-per-node", "2"},
                  {"--cpus-per-rank", "3"},
                  {"--gpus-per-rank", "1"},
                  {"--time", "30"},
                  {"--memory", "8G"},
                  {"--partition", "long"},
                  {"--account", "project"},
                  {"--qos", "high"},
                  {"--constraint", "ib"},
                  {"--exclusive", ""},
                  {"--requeue", ""},
                  {"--output", "log.txt"},
                  {"--preflight", ""},
                  {"--srun-mpi", "pmi2"},
                  {"--namespace", "training"},
                  {"--volume", "runs:/runs"},
                  {"--node-selector", "gpu=h100"},
                  {"--service-account", "trainer"},
                  {"--pull-policy", "Always"},
                  {"--hosts", "hosts.txt"},
                  {"--without-ssh", ""},
                  {"--container", "other.sif"},
                  {"--runtime", "apptainer"},
                  {"--json", ""},
                  {"--binary", "/opt/sextant"}}};
  return launch;
}

std::string command_of(const VerbCase& verb, const Given& given, const std::string& file) {
  std::string line = verb.verb;
  for (const char* positional : {"config", "overrides"})
    if (given.contains(positional)) line += " " + given.at(positional);
  for (const auto& [name, value] : given)
    if (name.starts_with("--")) line += fmt::format(" {} {}", name, value == kWrites ? file : value);
  return line;
}

// Output and written file of the program, without the seconds that it took.
struct Answer {
  int code = 0;
  std::string text, file;
};

Answer ask(const VerbCase& verb, const Given& given) {
  ScratchPlace place("options");
  std::string file = place / "written";
  Outcome outcome = run_command(command_of(verb, given, file));
  static const std::regex seconds(R"(in [0-9.]+ s\n|"search_seconds": [0-9.e+-]+|[0-9]+ priced.*\n)");
  Answer answer{.code = outcome.code, .text = std::regex_replace(outcome.output, seconds, ""), .file = {}};
  // The section of a page about its command differs for every option, so it is cut off.
  if (fs::exists(file))
    answer.file = read_file(file), answer.file.resize(std::min(answer.file.size(), answer.file.find("<h2>Made by")));
  return answer;
}

// Some options need others beside them, or take the place of one.
Given with_option(const VerbCase& verb, Given given, const std::string& option) {
  given[option] = verb.samples.at(option);
  if (option == "--runtime" && verb.verb == "launch") given.try_emplace("--container", "image.sif");
  if (option == "--without-ssh" && given.contains("--kubernetes")) given["--namespace"] = "training";
  if (option == "--ranks-per-node") given["overrides"] = "mesh.dp=4 batch.microbatch=1";
  // mpirun knows apptainer only: there the other runtime is what makes a difference, by a refusal.
  if (option == "--runtime" && given.contains("--mpi") && !given.contains("--without-ssh")) given[option] = "pyxis";
  if (option == "--compute") given.erase("--params");
  if (option == "--vary" || option == "--layouts") given["--html"] = kWrites;
  if (option == "--imbalance" && given.contains("config")) {
    given["config"] = config_path("tiny-moe.toml");
    given["overrides"] = "mesh.dp=2 mesh.ep=2 batch.microbatch=2";
  }
  return given;
}

// By the table: whether the mode that this command line chooses uses all that stands on it.
bool all_used(const VerbCase& verb, const Given& given) {
  std::vector<std::string> names = names_of(given);
  size_t mode = 0;
  try {
    mode = verb.mode_of(names);
  } catch (const UserError&) {
    return false;
  }
  return std::ranges::all_of(names, [&](const std::string& name) { return verb.table.use_of(name).modes >> mode & 1; });
}

void expect_used_or_refused(const VerbCase& verb, size_t mode, const std::string& option, const Answer& of_base) {
  const Given& base = verb.bases[mode];
  if (base.contains(option) && base.at(option) == verb.samples.at(option)) return;  // a flag that chooses the mode
  Given given = with_option(verb, base, option);
  std::string line = command_of(verb, given, kWrites);
  Answer answer = ask(verb, given);
  if (all_used(verb, given)) {
    Given without = given;
    without.erase(option);
    if (base.contains(option)) without[option] = base.at(option);
    Answer before = without == base ? of_base : ask(verb, without);
    EXPECT_TRUE(answer.code == 0 || option == "--validate" || given[option] == "pyxis") << line << "\n" << answer.text;
    EXPECT_TRUE(answer.text != before.text || answer.file != before.file)
        << line << " says the same without " << option;
    bool writes = std::ranges::any_of(given, [](const auto& one) { return one.second == kWrites; });
    EXPECT_EQ(writes, !answer.file.empty()) << line << "\n" << answer.text;
    return;
  }
  EXPECT_EQ(answer.code, 2) << line << "\n" << answer.text;
  EXPECT_TRUE(!option.starts_with("--") || answer.text.find(option) != std::string::npos) << line << "\n"
                                                                                          << answer.text;
  EXPECT_TRUE(answer.text.find("leave it out") != answer.text.npos ||
              answer.text.find("requires") != answer.text.npos || answer.text.find("expected") != answer.text.npos)
      << line << "\n"
      << answer.text;
  EXPECT_TRUE(answer.file.empty()) << line;
}

void expect_all_used_or_refused(const VerbCase& verb, size_t mode) {
  const Given& base = verb.bases[mode];
  ASSERT_EQ(verb.mode_of(names_of(base)), mode);
  Answer once = ask(verb, base), twice = ask(verb, base);
  ASSERT_EQ(once.code, 0) << once.text;
  ASSERT_EQ(once.text, twice.text);  // or no difference would mean anything
  for (const OptionUse& use : verb.table.options) expect_used_or_refused(verb, mode, std::string(use.option), once);
}

class PlanModes : public testing::TestWithParam<size_t> {};
TEST_P(PlanModes, EveryOptionIsUsedOrRefused) {
  expect_all_used_or_refused(plan_case(), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Options, PlanModes, testing::Range<size_t>(0, plan_options().modes.size()),
                         [](const auto& info) { return std::string(plan_options().modes[info.param].name); });

class LaunchModes : public testing::TestWithParam<size_t> {};
TEST_P(LaunchModes, EveryOptionIsUsedOrRefused) {
  expect_all_used_or_refused(launch_case(), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Options, LaunchModes, testing::Range<size_t>(0, launch_options().modes.size()),
                         [](const auto& info) { return std::string(launch_options().modes[info.param].name); });

TEST(OptionUse, EveryModeHasABaseAndEveryOptionASample) {
  for (const VerbCase* verb : {&plan_case(), &launch_case()}) {
    EXPECT_EQ(verb->bases.size(), verb->table.modes.size());
    for (const OptionUse& use : verb->table.options)
      EXPECT_TRUE(verb->samples.contains(std::string(use.option))) << use.option;
  }
}

TEST(OptionUse, WhatOnlyAMachineCanAnswerNeedsOne) {
  for (const OptionUse& use : plan_options().options) {
    std::string option(use.option);
    if (!needs_machine(option)) continue;
    Outcome outcome = run_command(command_of(
        plan_case(), {{"config", config_path("tiny-llama.toml")}, {option, plan_case().samples.at(option)}}, "none"));
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_NE(outcome.output.find("--machine"), std::string::npos) << outcome.output;
  }
}

// Options of other verbs that mean nothing without another, or beside it.
TEST(OptionUse, OptionsThatNeedOrExcludeOthersSaySo) {
  std::string tiny = config_path("tiny-llama.toml");
  for (const std::string& line : {std::string("bench gemm --set mesh.tp=2"),
                                  std::string("bench gemm --step 64"),
                                  std::string("bench gemm --most 64"),
                                  std::string("bench comm --set mesh.tp=2"),
                                  std::string("bench gemm --per-token 1"),
                                  std::string("bench gemm --tokens 64"),
                                  std::string("bench gemm --hidden 64"),
                                  std::string("bench gemm --width 64"),
                                  std::string("bench gemm --imbalance 2"),
                                  std::string("bench ops --set mesh.tp=2"),
                                  std::string("bench gemm --experts 4 --save /tmp/none.toml --imbalance 2"),
                                  "bench comm --ranks 2 --config " + tiny,
                                  std::string("doctor --seed 3"),
                                  std::string("bench comm --device cuda --op broadcast"),
                                  std::string("generate somewhere --check-stories 3 --samples 2"),
                                  std::string("generate somewhere --check-stories 0"),
                                  std::string("bench machine --device cpu --save /tmp/none.toml --seconds 1"),
                                  "train " + tiny + " --ranks 0",
                                  "train " + tiny + " --profile 0",
                                  "run " + tiny + " --slurm-step --mpi 2",
                                  "run " + tiny + " --hosts file",
                                  "run " + tiny + " --launcher-arg WORD",
                                  "run " + tiny + " --stale 0",
                                  "launch " + tiny + " --slurm --runtime pyxis",
                                  "plan " + tiny + " --html ''",
                                  "plan " + tiny + " --vary devices=2",
                                  fmt::format("plan {0} --machine h100-sxm --search --write {0}", tiny)}) {
    Outcome outcome = run_command(line);
    EXPECT_EQ(outcome.code, 2) << line << "\n" << outcome.output;
    std::string option = line.substr(line.rfind("--"));
    EXPECT_NE(outcome.output.find(option.substr(0, option.find(' '))), std::string::npos) << line << "\n"
                                                                                          << outcome.output;
  }
}

TEST(OptionUse, ATokenizerIsNotPassedOverForText) {
  ScratchPlace place("inspect");
  write_file_atomically(place / "a.txt", "one fox\n");
  ASSERT_EQ(
      run_command(fmt::format("data train-tokenizer {} --vocab 300 --out {}", place / "a.txt", place / "t.json")).code,
      0);
  Outcome outcome = run_command(fmt::format("data inspect {} --tokenizer {}", place / "a.txt", place / "t.json"));
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("--tokenizer"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace sextant
