// --quiet, --verbose and --json: what is printed beside the result, and the result for scripts.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

using Json = nlohmann::json;

size_t step_lines(const std::string& text) {
  static const std::regex line("step +[0-9]+/4  loss");
  return static_cast<size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), line), {}));
}

class TrainedOutput : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = std::make_unique<ScratchPlace>("output");
    usual_ = train_anew("run", "");
  }
  static void TearDownTestSuite() { place_.reset(); }

  static Outcome train_anew(const std::string& out, const std::string& extra) {
    return run_command(fmt::format(
        "train {} --out {} data.cache={} data.stories_bytes=60000 train.threads=1 optimizer.warmup=0 train.steps=4 "
        "train.log_every=2 train.eval_every=4 {}",
        config_path("tiny-llama.toml"), *place_ / out, *place_ / "cache", extra));
  }

  static inline std::unique_ptr<ScratchPlace> place_;
  static inline Outcome usual_;
};

TEST_F(TrainedOutput, StepsArePrintedAsAsked) {
  ASSERT_EQ(usual_.code, 0) << usual_.output;
  EXPECT_EQ(step_lines(usual_.output), 3u) << usual_.output;  // 1, 2 and 4
  Outcome quiet = train_anew("quiet", "-q"), verbose = train_anew("verbose", "--verbose");
  ASSERT_EQ(quiet.code, 0) << quiet.output;
  EXPECT_EQ(step_lines(quiet.output), 0u) << quiet.output;
  EXPECT_EQ(std::count(quiet.output.begin(), quiet.output.end(), '\n'), 3) << quiet.output;
  expect_words(quiet.output, {"validation loss", "model    ", "metrics  "});
  EXPECT_EQ(step_lines(verbose.output), 4u) << verbose.output;
  expect_refusal(train_anew("both", "-q -v"), 2, {"--verbose", "--quiet"});
}

TEST_F(TrainedOutput, TheResultOfARunAsJson) {
  Outcome outcome = train_anew("json", "--json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  Json json = Json::parse(outcome.output);
  EXPECT_EQ(json.at("outcome"), "finished");
  EXPECT_EQ(json.at("step"), 4);
  // The same figures as in the text.
  expect_words(usual_.output, {fmt::format("validation loss {:.4f} nats", json.at("validation_loss").get<double>()),
                               fmt::format("loss {:.4f}", json.at("loss").get<double>()),
                               fmt::format("perplexity {:.4g}", json.at("perplexity").get<double>())});
  EXPECT_TRUE(std::filesystem::exists(json.at("checkpoint").get<std::string>()));
  EXPECT_TRUE(std::filesystem::exists(json.at("metrics").get<std::string>()));
}

TEST_F(TrainedOutput, TextsAsJson) {
  std::string base =
      fmt::format("generate {} --prompt 'One day' --max-tokens 12 --samples 2 --seed 3", *place_ / "run");
  Outcome text = run_command(base + " 2> /dev/null"), json = run_command(base + " --json");
  ASSERT_EQ(json.code, 0) << json.output;
  Json samples = Json::parse(json.output).at("samples");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(text.output,
            samples[0]["text"].get<std::string>() + "\n\n---\n" + samples[1]["text"].get<std::string>() + "\n");
  for (const Json& sample : samples) {
    EXPECT_LE(sample.at("tokens"), 12);
    EXPECT_EQ(sample.at("stopped") == "max_tokens", sample.at("tokens") == 12) << sample;
  }
  Outcome loud = run_command(base), quiet = run_command(base + " --quiet");
  EXPECT_EQ(quiet.output, text.output);
  expect_words(loud.output, {"(stopped: "});
}

TEST(ExplainOutput, PassesAsJson) {
  std::string base = "explain " + config_path("tiny-llama.toml");
  Outcome text = run_command(base), json = run_command(base + " --json");
  ASSERT_EQ(json.code, 0) << json.output;
  Json passes = Json::parse(json.output).at("passes");
  EXPECT_GE(passes.size(), 10u);
  for (const Json& pass : passes)
    expect_words(text.output,
                 {fmt::format("{:<12}{:>8}{:>8}  {}\n", pass["pass"].get<std::string>(), pass["ops"].get<int>(),
                              pass["values"].get<int>(), pass["about"].get<std::string>())});
  std::string program =
      Json::parse(run_command(base + " --after infer --json").output).at("program").get<std::string>();
  EXPECT_TRUE(program.starts_with("graph llama\nmesh pp=1 dp=1 cp=1 tp=1\nvalue %0 feed")) << program;
}

// Every stage of a pipeline is in the text, one after the other.
TEST(ExplainOutput, ProgramsOfAllStages) {
  std::string base = "explain " + config_path("tiny-llama.toml") + " mesh.pp=2 batch.microbatch=2";
  Outcome text = run_command(base + " --after freeze"), json = run_command(base + " --after freeze --json");
  expect_words(text.output, {"program llama of pipeline rank 0, mesh", "program llama of pipeline rank 1, mesh"});
  expect_words(Json::parse(json.output).at("program").get<std::string>(), {"program 0 ", "\nprogram 1 "});
}

TEST(ExplainOutput, FiltersKeepWhatTheyName) {
  std::string base = "explain " + config_path("tiny-llama.toml") + " mesh.tp=2 --after infer";
  Outcome text = run_command(base + " --layer 1 --op linear"),
          json = run_command(base + " --layer 1 --op linear --json");
  ASSERT_EQ(text.code, 0) << text.output;
  expect_words(text.output, {"How to read this", "4 of ", " ops (layer 1, op linear)",
                             "layers.1.mlp.down.out  (forward", "in   %", "out  %", "tp:S(0)"});
  EXPECT_EQ(text.output.find("layers.0."), std::string::npos) << text.output;
  EXPECT_EQ(text.output.find("swiglu {"), std::string::npos) << text.output;
  Json ops = Json::parse(json.output).at("ops");
  ASSERT_EQ(ops.size(), 4u);
  for (const Json& op : ops) {
    EXPECT_EQ(op.at("op"), "linear");
    EXPECT_EQ(op.at("layer"), 1);
    EXPECT_EQ(op.at("inputs").size(), 2u);
    EXPECT_TRUE(op.at("outputs")[0].at("offset").is_null());
    expect_words(text.output, {op.at("path").get<std::string>(), op.at("outputs")[0].at("type").get<std::string>()});
  }
  // Without a pass it is the program that runs, with its memory.
  Outcome running = run_command("explain " + config_path("tiny-llama.toml") + " --op adamw");
  expect_words(running.output, {"program llama of pipeline rank 0", "optimizer at ", "here ["});
}

TEST(ExplainOutput, WhatIsNotThereIsNamedWithTheNearest) {
  std::string base = "explain " + config_path("tiny-llama.toml");
  for (const auto& [options, words] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {" --layer 7", {"the model has no layer 7", "0 to 1", "the nearest is --layer 1"}},
           {" --op linaer", {"no op is called 'linaer'", "did you mean linear?"}},
           {" --op layer_norm", {"after freeze no op is called 'layer_norm'", "rms_norm"}},
           {" --op embedding --layer 0 --after build",
            {"after build no op is called 'embedding' in layer 0", "swiglu"}},
           {" --after autodif", {"no pass is called 'autodif'", "did you mean autodiff?"}}}) {
    Outcome outcome = run_command(base + options);
    EXPECT_EQ(outcome.code, 2) << options;
    for (const std::string& word : words) expect_words(outcome.output, {word});
  }
}

}  // namespace
}  // namespace sextant
