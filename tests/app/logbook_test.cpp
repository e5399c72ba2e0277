// The log of a run that was killed, restarted, went on with another mesh and learning rate and had a spike, as a person
// would tell it: tests/fixtures/logbook/logbook.md holds it, with times and measured numbers left open.
#include <gtest/gtest.h>

#include <regex>

#include "base/files.h"
#include "checkout.h"
#include "expectations.h"

namespace sextant {
namespace {

// Replaces the values that differ from run to run, and the numbers whose last digits differ between machines.
std::string with_open_numbers(std::string text, const std::string& place) {
  for (size_t at = 0; (at = text.find(place)) != text.npos;) text.replace(at, place.size(), "PLACE");
  for (const auto& [found, put] :
       std::vector<std::pair<const char*, const char*>>{{R"(\d{4}-\d\d-\d\d)", "DATE"},
                                                        {R"(\d\d:\d\d:\d\d)", "TIME"},
                                                        {R"(\d+(\.\d+)? m?s (of steps|lost))", "N s $2"},
                                                        {R"(\d+\.\d+)", "N"},
                                                        {R"(rank 0 on [^\n]+)", "rank 0 on HOST"}})
    text = std::regex_replace(text, std::regex(found), put);
  return text;
}

TEST(Logbook, TellsTheStoryOfARun) {
  ScratchPlace place("logbook");
  std::string settings = fmt::format(
      "{} data.cache={} data.stories_bytes=60000 train.threads=1 optimizer.warmup=0 model.layers=1 model.hidden=32 "
      "batch.microbatch=1 batch.seq=32 train.spike.window=12 checkpoint.every=5 checkpoint.background=false "
      "train.eval_every=0 --out {} -q ",
      config_path("tiny-llama.toml"), place / "cache", place / "run");
  Outcome killed = run_command("run " + settings + "train.steps=20 --inject kill@13");
  ASSERT_EQ(killed.code, 0) << killed.output;
  ASSERT_EQ(
      run_command(fmt::format("log {} --note 'a larger learning rate from here on, on two ranks'", place / "run")).code,
      0);
  Outcome changed = run_command("train " + settings + "train.steps=40 mesh.dp=2 optimizer.lr=3");
  ASSERT_EQ(changed.code, 0) << changed.output;
  Outcome log = run_command("log " + (place / "run"));
  ASSERT_EQ(log.code, 0) << log.output;
  EXPECT_EQ(with_open_numbers(log.output, place.path().string()),
            read_file(std::string(checkout::kSources) + "/tests/fixtures/logbook/logbook.md"));
}

}  // namespace
}  // namespace sextant
