// Every option of every verb: a value that is missing or bad, and an option that is missing, are answered by the
// option, what was got, and what it takes. Help pages fit a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/help_tree.h"
#include "expectations.h"

namespace sextant {
namespace {

using Json = nlohmann::json;

// All verbs that do something, as `sextant help --json` lists them.
void append_verbs(const Json& command, std::vector<Json>& verbs) {
  if (command.at("verbs").empty()) verbs.push_back(command);
  for (const Json& below : command.at("verbs")) append_verbs(below, verbs);
}
std::vector<Json> all_verbs() {
  std::vector<Json> verbs;
  append_verbs(Json::parse(run_command("help --json").output), verbs);
  return verbs;
}

// As it stands on a command line: "--out", or the name of a positional.
std::string long_name(const Json& option) {
  for (const Json& name : option.at("names"))
    if (name.get<std::string>().starts_with("--")) return name;
  return option.at("names").at(0);
}

bool takes_value(const Json& option) {
  return !option.at("type").is_null() && !option.at("positional").get<bool>();
}

bool takes_number(const Json& option) {
  std::string type = option.at("type");
  return type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
}

// An integer that no range bounds: where one does, the complaint names that.
bool says_too_large(const std::string& expected, std::string_view value) {
  bool has_range = expected.find(" at least ") != expected.npos || expected.find(" from ") != expected.npos;
  return value.size() > 20 && expected.starts_with("a whole number") && !has_range;
}

TEST(OptionMessages, EveryOptionSaysInWordsWhatItTakes) {
  size_t options = 0;
  for (const Json& verb : all_verbs())
    for (const Json& option : verb.at("options")) {
      if (option.at("type").is_null()) continue;
      ++options;
      const std::string expected = option.at("expected"),
                        place = verb.at("verb").get<std::string>() + " " + long_name(option);
      EXPECT_NE(expected, "a value") << place
                                     << " needs a row in the values of its VerbDef, or in app/option_values.cpp";
      EXPECT_FALSE(expected.empty()) << place;
      if (!option.at("positional").get<bool>()) {
        EXPECT_NE(expected, option.at("about").get<std::string>()) << place;
      }
      EXPECT_EQ(expected.find(" in ["), expected.npos) << place << ": " << expected;
    }
  EXPECT_GT(options, 200u);
}

TEST(OptionMessages, AMissingValue) {
  for (const Json& verb : all_verbs())
    for (const Json& option : verb.at("options")) {
      if (!takes_value(option) || option.at("value_optional").get<bool>()) continue;
      const std::string words = verb.at("verb"), name = long_name(option), expected = option.at("expected");
      expect_refusal(run_command(words + " " + name), 2,
                     {fmt::format("sextant: {}: {} has no value; expected {}\n", words, name, expected)});
    }
}

TEST(OptionMessages, ABadValue) {
  size_t tried = 0;
  for (const Json& verb : all_verbs())
    for (const Json& option : verb.at("options")) {
      if (!takes_value(option)) continue;
      bool word = option.contains("one_of");
      if (!word && !takes_number(option)) continue;  // free text is judged by the verb
      const std::string words = verb.at("verb"), name = long_name(option), expected = option.at("expected");
      for (const char* value : {"3x", "99999999999999999999999"}) {
        if (option.at("type").get<std::string>().starts_with("FLOAT") && std::string(value) != "3x") continue;
        const std::string shown = word ? fmt::format("'{}'", value) : value;
        expect_refusal(run_command(fmt::format("{} {} {}", words, name, value)), 2,
                       {fmt::format("sextant: {}: {} {}{}; expected {}\n", words, name, shown,
                                    says_too_large(expected, value) ? " is too large a number" : "", expected)});
        ++tried;
      }
    }
  EXPECT_GT(tried, 150u);
}

TEST(OptionMessages, AMissingOption) {
  for (const Json& verb : all_verbs()) {
    const std::string words = verb.at("verb");
    for (const Json& missing : verb.at("options")) {
      if (!missing.at("required").get<bool>()) continue;
      std::string line = words;
      bool above_positional = false;  // a positional behind the missing one would take its place
      for (const Json& other : verb.at("options")) {
        if (other == missing || !other.at("required").get<bool>()) continue;
        if (other.at("positional").get<bool>() && missing.at("positional").get<bool>()) above_positional = true;
        std::string value = other.contains("one_of") ? other.at("one_of").at(0).get<std::string>()
                            : takes_number(other)    ? "1"
                                                     : "x";
        line += other.at("positional").get<bool>() ? " " + value : fmt::format(" {} {}", long_name(other), value);
      }
      if (above_positional) line = words;
      const std::string name = long_name(missing), expected = missing.at("expected");
      Outcome outcome = run_command(line);
      EXPECT_EQ(outcome.code, 2) << line;
      if (above_positional && outcome.output.find(name + " is required") == outcome.output.npos) continue;
      expect_words(outcome.output, {fmt::format("sextant: {}: {} is required; expected {}\n", words, name, expected)});
    }
  }
}

TEST(OptionMessages, MessagesInFull) {
  for (const auto& [command, says] : std::vector<std::pair<std::string, std::string>>{
           {"ask devices gpt2 --machine h200 --tokens 1B",
            "--days is required; expected a number of days from 0.000001"},
           {"ask largest --machine h200",
            "--devices is required; expected a whole number of devices from 1 to 1048576"},
           {"plan x --trace", "--trace has no value; expected the name of a file to write"},
           {"generate x --temperature 3x", "--temperature 3x; expected a number"},
           {"train x --json=0", "--json has a value; expected --json alone"},
           {"compare x", "directories: 1 given; expected at least 2"},
           {"doctor --seed 3", "--seed is given without --burn; expected --burn as well"},
           {"list schedules -q -v", "is given with"}})
    expect_refusal(run_command(command), 2, {says});
}

// "300M" and "1.4T" of "a number of tokens, such as 300M or 1.4T".
std::vector<std::string> examples_in(const std::string& expected) {
  constexpr std::string_view kSuchAs = " such as ", kOr = " or ";
  size_t at = expected.find(kSuchAs);
  if (at == expected.npos) return {};
  std::vector<std::string> examples;
  std::string rest = expected.substr(at + kSuchAs.size());
  for (size_t end = rest.find(kOr); end != rest.npos; end = rest.find(kOr)) {
    examples.push_back(rest.substr(0, end));
    rest.erase(0, end + kOr.size());
  }
  examples.push_back(rest);
  return examples;
}

// Help must not promise a value that is refused. An option that is judged by the verb, not while the command line is
// read, has a command here in which its examples are tried.
TEST(OptionMessages, ExamplesOfValuesAreTaken) {
  ScratchPlace place("examples-of-values");
  ASSERT_EQ(run_command(tiny_train(place, "")).code, 0);
  const std::string tiny = config_path("tiny-llama.toml"), few = " --only tp=1 --only pp=1 --only dp=2";
  const std::string search = "search " + tiny + " --machine h100-sxm --devices 2" + few;
  const std::string what_if = "ask what-if gpt2 --machine h200 --devices 8 --tokens 10B --only tp=1 --only pp=1";
  const std::map<std::string, std::string> commands{
      {"search --headroom", search},
      {"plan --tokens", "plan " + tiny + " --machine h200"},
      {"laws --params", "laws"},
      {"laws --compute", "laws"},
      {"laws --inference-tokens", "laws --params 1B"},
      {"ask what-if --change", what_if},
      {"replay --against", "replay " + place / "run" + " --step 10 --bisect"},
      {"launch --constraint", "launch --slurm " + tiny},
      {"launch --output", "launch --slurm " + tiny},
      {"launch --memory", "launch --slurm " + tiny},
      {"launch --srun-mpi", "launch --slurm " + tiny},
      {"launch --volume", "launch --kubernetes --container registry.example/sextant:1 " + tiny}};
  size_t tried = 0;
  for (const Json& verb : all_verbs())
    for (const Json& option : verb.at("options")) {
      if (option.at("type").is_null()) continue;
      auto command = commands.find(verb.at("verb").get<std::string>() + " " + long_name(option));
      if (command == commands.end()) continue;
      for (const std::string& example : examples_in(option.at("expected"))) {
        const std::string line = fmt::format("{} {} '{}'", command->second, long_name(option), example);
        Outcome outcome = run_command(line);
        EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.output;
        ++tried;
      }
    }
  EXPECT_GE(tried, commands.size());
}

size_t columns(const std::string& line) {
  return static_cast<size_t>(std::ranges::count_if(line, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

TEST(HelpPages, FitAHundredColumns) {
  for (const HelpPage& page : help_tree()) {
    std::istringstream text(run_command(page.words + " --help").output);
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(columns(line), 100u) << page.words << ": " << line;
      EXPECT_EQ(line.find("INT"), line.npos) << page.words << ": " << line;
    }
  }
}

}  // namespace
}  // namespace sextant
