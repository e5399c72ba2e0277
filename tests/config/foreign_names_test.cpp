// Names of other programs are answered with keys that exist, for every name in docs/glossary.md.
#include "config/foreign_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "checkout.h"
#include "config/schema.h"

namespace sextant {
namespace {

TEST(ForeignNames, EveryOptionOfMegatronLeadsToAKeyOfItsRow) {
  std::istringstream page(read_file(std::string(checkout::kSources) + "/docs/glossary.md"));
  const std::regex row(R"(^\| (`[a-z0-9_.]+`(?:, `[a-z0-9_.]+`)*) \| (.*)$)"), option("`(--[a-z0-9-]+)`");
  size_t options = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    std::string key = cells[1].str().substr(1);
    if (!find_key(key.substr(0, key.find('`')))) continue;  // a table with names of others first
    std::string rest = cells[2].str(), first = rest.substr(0, rest.find('|'));
    if (first.find('(') != first.npos) continue;  // says a value of the option, too
    for (std::sregex_iterator at(first.begin(), first.end(), option), end; at != end; ++at) {
      std::string name = (*at)[1].str();
      ForeignName found = find_foreign_name(name);
      ASSERT_FALSE(found.keys.empty()) << name;
      for (const std::string& each : found.keys) EXPECT_TRUE(find_key(each)) << name << " " << each;
      ++options;
    }
  }
  EXPECT_GT(options, 60u);
}

TEST(ForeignNames, AreFoundAsTheyAreTyped) {
  for (const auto& [name, key] :
       std::vector<std::pair<std::string, std::string>>{{"--global-batch-size", "batch.sequences"},
                                                        {"gradient_accumulation_steps", "batch.sequences"},
                                                        {"per-device-train-batch-size", "batch.microbatch"},
                                                        {"training.steps", "train.steps"},
                                                        {"optimizer.params.lr", "optimizer.lr"},
                                                        {"num_hidden_layers", "model.layers"},
                                                        {"LR", "optimizer.lr"},
                                                        {"batch_accumulation_per_replica", "batch.sequences"}})
    EXPECT_EQ(find_foreign_name(name).keys, std::vector<std::string>{key}) << name;
  EXPECT_EQ(find_foreign_name("train.num_train_epochs").ours, "");
  EXPECT_EQ(find_foreign_name("train.num_train_epochs", ForeignMatch::last_part).keys.at(0), "train.steps");
  EXPECT_EQ(answer_for_foreign_name("toaster"), "");
  EXPECT_EQ(answer_for_foreign_name("output_dir"), "here it is --out, an option of sextant train");
}

// A key of ours is no foreign name of another key: `sextant` would answer a right key with a wrong one.
TEST(ForeignNames, HoldNoKeyOfOurs) {
  for (const Key& key : schema()) {
    ForeignName found = find_foreign_name(key.name);
    if (found.keys.empty()) continue;
    EXPECT_EQ(std::ranges::count(found.keys, std::string(key.name)), 1) << key.name << " is " << found.ours;
  }
}

}  // namespace
}  // namespace sextant
