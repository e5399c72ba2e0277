// No option is passed over: in every mode of a verb, every option either changes the answer or is refused by name. The
// cases are made from the verbs' own tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>

#include "app/launch_options.h"
#include "app/validate_options.h"
#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "command.h"
#include "expectations.h"

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
  OptionTable table;
  size_t (*mode_of)(const std::vector<std::string>& given);
  std::vector<Given> bases;  // what chooses each mode, in the table's order
  Given samples;             // a value for each option, other than the base's
};

std::vector<std::string> names_of(const Given& given) {
  std::vector<std::string> names;
  for (const auto& [name, value] : given) names.push_back(name);
  return names;
}

// Of a verb that does one thing: every option has an effect.
struct OneMode {
  std::string verb;
  Given base, samples;
};

std::vector<OneMode> verbs_of_one_mode() {
  const std::string tiny = config_path("tiny-llama.toml"), other = config_path("tiny-gpt2.toml");
  return {{.verb = "plan",
           .base = {{"config", tiny}, {"--machine", "h100-sxm"}},
           .samples = {{"config", other},
                       {"overrides", "model.layers=1"},
                       {"--json", ""},
                       {"--machine", "a100-40-sxm"},
                       {"--software", "megatron-2021"},
                       {"--tokens", "1B"},
                       {"--html", kWrites},
                       {"--vary", "batch.seq=16"},
                       {"--layouts", "1"},
                       {"--trace", kWrites},
                       {"--timeline", kWrites},
                       {"--memory-timeline", kWrites},
                       {"--mesh", kWrites},
                       {"--straggler", "2"},
                       {"--jitter", "0.5"},
                       {"--imbalance", "1.5"}}},
          {.verb = "search",
           .base = {{"config", tiny}, {"--machine", "h100-sxm"}},
           .samples = {{"config", other},
                       {"overrides", "model.layers=1"},
                       {"--json", ""},
                       {"--machine", "a100-40-sxm"},
                       {"--software", "megatron-2021"},
                       {"--tokens", "1B"},
                       {"--html", kWrites},
                       {"--imbalance", "1.5"},
                       {"--only", "recompute=full"},
                       {"--devices", "2"},
                       {"--headroom", "5%"},
                       {"--write", kWrites}}},
          {.verb = "plan-serving",
           .base = {{"config", tiny}, {"--machine", "h100-sxm"}, {"--prompt", "16"}},
           .samples = {{"config", other},
                       {"overrides", "model.layers=1"},
                       {"--json", ""},
                       {"--machine", "a100-40-sxm"},
                       {"--software", "megatron-2021"},
                       {"--prompt", "8"},
                       {"--context", "48"}}},
          {.verb = "laws",
           .base = {{"--fit", seed_path("runs.csv")}, {"--params", "1B"}},
           .samples = {{"--compute", "1e20"},
                       {"--tokens", "1B"},
                       {"--params", "2B"},
                       {"--inference-tokens", "1T"},
                       {"--fit", seed_path("runs_flops.csv")},
                       {"--json", ""}}},
          {.verb = "published",
           .base = {{"name", "playbook-3b-8"}},
           .samples = {{"name", "playbook-9b-16"}, {"--search", ""}, {"--only", "microbatch=1"}, {"--json", ""}}}};
}

// The table has one mode, which uses all options.
const VerbCase& one_mode_case(size_t verb) {
  static const std::vector<OneMode> verbs = verbs_of_one_mode();
  static constexpr VerbMode mode{"only", "the verb"};
  static std::map<size_t, std::vector<OptionUse>> uses;
  static std::map<size_t, VerbCase> cases;
  if (!cases.contains(verb)) {
    for (const auto& [option, value] : verbs[verb].samples) uses[verb].push_back({option, 1});
    cases.emplace(verb, VerbCase{.verb = verbs[verb].verb,
                                 .table = {std::span(&mode, 1), uses[verb]},
                                 .mode_of = [](const std::vector<std::string>&) { return size_t{0}; },
                                 .bases = {verbs[verb].base},
                                 .samples = verbs[verb].samples});
  }
  return cases.at(verb);
}

const VerbCase& validate_case() {
  static const std::string published = seed_path("published.csv");
  static const VerbCase validate{
      .verb = "validate",
      .table = validate_options(),
      .mode_of = [](const std::vector<std::string>& given) { return static_cast<size_t>(validate_mode(given)); },
      .bases = {{{"file", published}},
                {{"file", published}, {"--search", ""}},
                {{"file", published}, {"--calibrate", ""}},
                {{"file", published}, {"--hold-out", ""}}},
      .samples = {{"file", seed_path("runs.csv")},
                  {"--json", ""},
                  {"--html", kWrites},
                  {"--search", ""},
                  {"--calibrate", ""},
                  {"--hold-out", ""},
                  {"--machine", "a100-40-sxm"},
                  {"--memory", ""},
                  {"--write", kWrites}}};
  return validate;
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
  for (const char* positional : {"config", "overrides", "file", "name"})
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
  if (option == "--only" && verb.verb == "published") given["--search"] = "";
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
    EXPECT_TRUE(answer.code == 0 || option == "file" || given[option] == "pyxis") << line << "\n" << answer.text;
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

class OneModeVerbs : public testing::TestWithParam<size_t> {};
TEST_P(OneModeVerbs, EveryOptionHasAnEffect) {
  expect_all_used_or_refused(one_mode_case(GetParam()), 0);
}
INSTANTIATE_TEST_SUITE_P(Options, OneModeVerbs, testing::Range<size_t>(0, verbs_of_one_mode().size()),
                         [](const auto& info) {
                           std::string name = verbs_of_one_mode()[info.param].verb;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

class ValidateModes : public testing::TestWithParam<size_t> {};
TEST_P(ValidateModes, EveryOptionIsUsedOrRefused) {
  expect_all_used_or_refused(validate_case(), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Options, ValidateModes, testing::Range<size_t>(0, validate_options().modes.size()),
                         [](const auto& info) { return std::string(validate_options().modes[info.param].name); });

class LaunchModes : public testing::TestWithParam<size_t> {};
TEST_P(LaunchModes, EveryOptionIsUsedOrRefused) {
  expect_all_used_or_refused(launch_case(), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Options, LaunchModes, testing::Range<size_t>(0, launch_options().modes.size()),
                         [](const auto& info) { return std::string(launch_options().modes[info.param].name); });

TEST(OptionUse, EveryModeHasABaseAndEveryOptionASample) {
  for (const VerbCase* verb : {&validate_case(), &launch_case()}) {
    EXPECT_EQ(verb->bases.size(), verb->table.modes.size());
    for (const OptionUse& use : verb->table.options)
      EXPECT_TRUE(verb->samples.contains(std::string(use.option))) << use.option;
  }
  for (const OneMode& verb : verbs_of_one_mode()) {
    size_t options = 0;
    const nlohmann::json help = nlohmann::json::parse(run_command("help --json " + verb.verb).output);
    for (const nlohmann::json& option : help["options"]) {
      std::string name = option["names"][0];
      if (name == "--help" || name == "--quiet" || name == "--verbose") continue;
      EXPECT_TRUE(verb.samples.contains(name)) << verb.verb << " " << name;
      ++options;
    }
    EXPECT_EQ(options, verb.samples.size()) << verb.verb;
  }
}

TEST(OptionUse, WhatOnlyAMachineCanAnswerNeedsOne) {
  const VerbCase& plan = one_mode_case(0);
  for (const char* option :
       {"--software", "--tokens", "--layouts", "--imbalance", "--trace", "--timeline", "--straggler", "--jitter"}) {
    Given given{{"config", config_path("tiny-llama.toml")}, {option, plan.samples.at(option)}};
    if (std::string_view(option) == "--layouts") given["--html"] = kWrites;
    Outcome outcome = run_command(command_of(plan, given, "none"));
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_NE(outcome.output.find("--machine"), std::string::npos) << outcome.output;
  }
  for (const char* verb : {"search", "plan-serving"})
    expect_refusal(run_command(fmt::format("{} {}", verb, config_path("tiny-llama.toml"))), 2,
                   {"--machine is required"});
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
                                  std::string("published --only zero=1"),
                                  fmt::format("search {0} --machine h100-sxm --write {0}", tiny)}) {
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
