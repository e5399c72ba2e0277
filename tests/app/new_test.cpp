// `sextant new`: what it writes is planned and trained as it is.
#include <gtest/gtest.h>

#include "base/files.h"
#include "checkout.h"
#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

// The pages of this repository, as one text.
std::string own_text(const ScratchPlace& place) {
  std::string text;
  for (const char* page : {"README.md", "docs/planning.md", "docs/config.md", "docs/testing.md", "docs/tour.md"})
    text += read_file(fmt::format("{}/{}", checkout::kSources, page));
  write_text(place / "my.txt", text);
  return place / "my.txt";
}

std::string train_line(const ScratchPlace& place, const std::string& config, const std::string& out) {
  return fmt::format(
      "train {} --out {} data.cache={} train.steps=3 optimizer.warmup=1 train.eval_every=3 train.threads=2", config,
      place / out, place / "cache");
}

double number_behind(const std::string& text, const std::string& words) {
  size_t at = text.find(words);
  EXPECT_NE(at, text.npos) << words << " is not in:\n" << text;
  return at == text.npos ? 0 : std::stod(text.substr(at + words.size()));
}

double number_before(std::string text, const std::string& words) {
  text = text.substr(0, text.find(words));
  text = text.substr(text.find_last_of(' ') + 1);
  std::erase(text, ',');
  return std::stod(text);
}

// By the tokens that training counts.
void expect_passes_as_said(const std::string& said, const std::string& config, const std::string& trained) {
  double tokens =
      number_behind(config, "\nsteps = ") * number_behind(config, "\nsequences = ") * number_behind(config, "\nseq = ");
  double passes = tokens / number_before(trained, " training tokens");
  double claimed = number_behind(said.substr(said.find("\nsteps: ")), "about ");
  EXPECT_NEAR(claimed / passes, 1, 0.1) << said << trained;
}

TEST(NewVerb, AConfigForTextIsPlannedAndTrained) {
  ScratchPlace place("new");
  std::string config = place / "my.toml";
  Outcome written = run_command(fmt::format("new --from-text {} --out {}", own_text(place), config));
  ASSERT_EQ(written.code, 0) << written.output;
  expect_words(written.output,
               {"device: ", "model: llama", "parameters", "memory: ", "expected loss: about ", "sextant train"});
  expect_words(read_file(config), {"# Trains a new model", "[model]\n# ", "layers = ", "microbatch = "});
  EXPECT_EQ(run_command("plan " + config + " > /dev/null").code, 0);
  Outcome trained = run_command(train_line(place, config, "run"));
  ASSERT_EQ(trained.code, 0) << trained.output;
  expect_passes_as_said(written.output, read_file(config), trained.output);
  // And from the model that was made.
  std::string further = place / "further.toml";
  Outcome again =
      run_command(fmt::format("new --from-model {} --from-text {} --out {}", place / "run", place / "my.txt", further));
  ASSERT_EQ(again.code, 0) << again.output;
  Outcome tuned = run_command(train_line(place, further, "tuned"));
  EXPECT_EQ(tuned.code, 0) << tuned.output;
  expect_words(tuned.output, {"starting from the weights of"});
}

TEST(NewVerb, RowsOfNoTokenAreToldOf) {
  ScratchPlace place("new");
  std::string line = fmt::format(
      "train {} --out {} data.cache={} data.stories_bytes=60000 train.steps=1 train.threads=1 train.eval_every=0 "
      "optimizer.warmup=0 model.vocab=",
      config_path("tiny-llama.toml"), place / "run", place / "cache");
  Outcome wide = run_command(line + "5000");
  ASSERT_EQ(wide.code, 0) << wide.output;
  expect_words(wide.output, {"the tokenizer has 512 ids, the model 5,000 rows of vocabulary"});
}

TEST(NewVerb, APresetIsPlanned) {
  ScratchPlace place("new");
  Outcome written =
      run_command(fmt::format("new --preset pythia-70m --minutes 60 > {} 2> {}", place / "a.toml", place / "why"));
  ASSERT_EQ(written.code, 0) << written.output;
  expect_words(read_file(place / "why"), {"model: pythia-70m, with "});
  EXPECT_EQ(run_command("plan " + place / "a.toml" + " > /dev/null").code, 0);
}

TEST(NewVerb, SaysWhatIsWrong) {
  ScratchPlace place("new");
  expect_refusal(run_command("new"), 2, {"--from-text", "--from-model", "--preset"});
  expect_refusal(run_command("new --preset pythia-70n"), 2, {"pythia-70n", "did you mean"});
  expect_refusal(run_command("new --from-text /none.txt"), 2, {"/none.txt"});
  write_text(place / "small.txt", "One fox.\n");
  expect_refusal(run_command("new --from-text " + place / "small.txt"), 2, {"too few", "bytes of text"});
  write_text(place / "here.toml", "");
  expect_refusal(run_command("new --preset pythia-70m --out " + place / "here.toml"), 2, {"the file exists"});
}

}  // namespace
}  // namespace sextant
