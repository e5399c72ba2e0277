// `sextant list` and `sextant help`: what they show is what the program knows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/command.h"

namespace sextant {
namespace {

TEST(ListVerb, EveryListHasItemsInBothForms) {
  for (const char* what : {"models", "machines", "software", "schedules", "optimizers", "configs"}) {
    Outcome text = run_command(fmt::format("list {}", what)), json = run_command(fmt::format("list {} --json", what));
    ASSERT_EQ(text.code, 0) << text.output;
    ASSERT_EQ(json.code, 0) << json.output;
    auto items = nlohmann::json::parse(json.output);
    EXPECT_GE(items.size(), 5u) << what;
    for (const auto& item : items) {
      EXPECT_NE(text.output.find(item.at("name").get<std::string>()), std::string::npos) << what << " " << item;
      EXPECT_FALSE(item.at("about").get<std::string>().empty()) << what << " " << item;
    }
  }
}

// The configs of large and of published runs are lowered by OneTarget and by tests of validation, which takes a minute
// here.
TEST(ListVerb, WhatIsListedIsAccepted) {
  int planned = 0;
  for (const auto& config : nlohmann::json::parse(run_command("list configs --json").output)) {
    const auto path = config["name"].get<std::string>();
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
    if (path.find("/plan/") != path.npos || path.find("/published/") != path.npos) continue;
    EXPECT_EQ(run_command(fmt::format("plan {} --json > /dev/null", path)).code, 0) << path;
    ++planned;
  }
  EXPECT_GE(planned, 5);
}

TEST(ListVerb, AnUnknownListIsRefused) {
  Outcome outcome = run_command("list machnes");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("did you mean machines?"), std::string::npos) << outcome.output;
}

TEST(OptionValues, ShortWordsAreNotGuessed) {
  Outcome outcome = run_command("doctor --device gpu");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("one of auto, cpu, cuda"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("did you mean"), std::string::npos) << outcome.output;
}

TEST(HelpVerb, IsTheHelpOfTheVerb) {
  EXPECT_EQ(run_command("help bench comm").output, run_command("bench comm --help").output);
  EXPECT_EQ(run_command("help").output, run_command("--help").output);
  Outcome wrong = run_command("help trian");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.output.find("did you mean train?"), std::string::npos) << wrong.output;
}

}  // namespace
}  // namespace sextant
