// The verbs, as a newcomer would type them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "command.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

TEST(Verbs, TrainThenGenerate) {
  ScratchPlace place("verbs");
  Outcome trained = run_command(tiny_train(place, ""));
  EXPECT_EQ(trained.code, 0) << trained.output;
  EXPECT_NE(trained.output.find("step 10/10"), std::string::npos) << trained.output;
  Outcome one = run_command(fmt::format("generate {} --prompt 'One day' --seed 3 --max-tokens 20", place / "run"));
  Outcome two = run_command(fmt::format("generate {} --prompt 'One day' --seed 3 --max-tokens 20", place / "run"));
  Outcome other = run_command(fmt::format("generate {} --prompt 'One day' --seed 4 --max-tokens 20", place / "run"));
  EXPECT_EQ(one.code, 0) << one.output;
  EXPECT_EQ(one.output, two.output);
  EXPECT_NE(one.output, other.output);
  EXPECT_TRUE(one.output.starts_with("One day"));

  std::string generate = fmt::format("generate {} --prompt 'One day' --max-tokens 20", place / "run");
  Outcome texts = run_command(generate + " --seed 3 --samples 2 2>/dev/null");
  size_t apart = texts.output.find("\n---\n");
  ASSERT_NE(apart, std::string::npos) << texts.output;
  EXPECT_EQ(texts.output.substr(0, apart), run_command(generate + " --seed 3 2>/dev/null").output);
  EXPECT_NE(texts.output.substr(apart + 5), texts.output.substr(0, apart));
  // Hot enough that any token may come: one of 26 does before the 60th, and ends the text.
  std::string hot =
                  fmt::format("generate {} --prompt 'One day' --max-tokens 60 --seed 3 --temperature 5", place / "run"),
              letters;
  for (char c = 'a'; c <= 'z'; ++c) letters += fmt::format(" --stop {}", c);
  EXPECT_NE(run_command(hot).output.find("--max-tokens reached"), std::string::npos);
  EXPECT_EQ(run_command(hot + letters).output.find("--max-tokens reached"), std::string::npos);
  for (const char* wrong : {"--top-p 0", "--top-p 1.1", "--temperature -1", "--top-k -1", "--samples 0",
                            "--max-tokens -1", "--stop nosuchtoken", "--prompt \"$(printf '\\377')\""})
    EXPECT_EQ(run_command(generate + " " + wrong).code, 2) << wrong;

  // A NaN in the last weight of the file: no text, and no training from it.
  fs::path damaged = place / "damaged";
  fs::create_directories(damaged);
  for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"})
    fs::copy_file(fs::path(place / "run/step-000010") / file, damaged / file);
  std::string weights = read_file(damaged / "model.safetensors");
  weights.replace(weights.size() - 4, 4, "\xff\xff\xff\x7f");
  write_file_atomically(damaged / "model.safetensors", weights);
  std::ofstream(place / "from.toml") << fmt::format(
      "[model]\nfrom = \"{}\"\n[data]\ntrain = \"stories\"\nstories_bytes = 60000\ncache = \"{}\"\n[batch]\nseq = 32\n",
      damaged.string(), place / "cache");
  for (const std::string& command :
       {fmt::format("generate {} --prompt 'One day'", damaged.string()),
        fmt::format("train {} --out {} train.steps=1", place / "from.toml", place / "from")}) {
    Outcome outcome = run_command(command);
    EXPECT_EQ(outcome.code, 2) << command << outcome.output;
    EXPECT_NE(outcome.output.find("is nan; expected finite weights"), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.output.find("One day"), std::string::npos) << outcome.output;
  }
}

TEST(Verbs, ProfileTimesEveryOpOfAStep) {
  ScratchPlace place("profile");
  Outcome trained = run_command(tiny_train(place, "--profile 2"));
  EXPECT_EQ(trained.code, 0) << trained.output;
  EXPECT_NE(trained.output.find("linear_weight_gradient"), std::string::npos) << trained.output;
  nlohmann::json trace = nlohmann::json::parse(read_file(place / "run/profile-step-2.json"));
  size_t ops = 0;
  for (const nlohmann::json& event : trace["traceEvents"]) ops += event["ph"] == "X";
  EXPECT_GT(ops, 50u);
  EXPECT_EQ(run_command(tiny_train(place, "--profile 11")).code, 2);
}

TEST(Verbs, DataOrderIsTheOneOfTheRun) {
  ScratchPlace place("order");
  std::ofstream(place / "run.toml") << fmt::format(
      "[model]\npreset = \"gpt2\"\n[data]\ntrain = \"stories\"\nstories_bytes = 60000\n"
      "cache = \"{}\"\ntokenizer_vocab = 300\n[batch]\nseq = 64\n",
      place / "cache");
  auto order = [&](int samples) {
    Outcome outcome = run_command(fmt::format("data order {} --samples {} 2>/dev/null", place / "run.toml", samples));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return nlohmann::json::parse(outcome.output.substr(outcome.output.find('[')));
  };
  nlohmann::json few = order(5), more = order(20);
  ASSERT_EQ(few.size(), 5u);
  ASSERT_EQ(more.size(), 20u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(few[i], more[i]);
  std::set<nlohmann::json> distinct(more.begin(), more.end());
  EXPECT_EQ(distinct.size(), 20u);  // of one epoch: none twice
}

TEST(Verbs, PlanTellsThePublishedParameterCounts) {
  struct Published {
    const char* preset;
    int64_t parameters;
  };
  for (const Published& p : {Published{"gpt2", 124439808}, Published{"gpt2-xl", 1557611200},
                             Published{"llama2-7b", 6738415616}, Published{"llama2-13b", 13015864320},
                             Published{"llama2-70b", 68976648192}, Published{"llama3.1-8b", 8030261248},
                             Published{"llama3.1-70b", 70553706496}, Published{"llama3.1-405b", 405853388800}}) {
    ScratchPlace place("plan");
    std::ofstream(place / "run.toml") << fmt::format("[model]\npreset = \"{}\"\n[batch]\nseq = 128\n", p.preset);
    Outcome outcome = run_command(fmt::format("plan {} --json", place / "run.toml"));
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    nlohmann::json report = nlohmann::json::parse(outcome.output);
    EXPECT_EQ(report["params"]["total"], p.parameters) << p.preset;
    EXPECT_EQ(report["memory"]["ranks"][0]["weights"], p.parameters * 4) << p.preset;
  }
}

TEST(Verbs, DataTokenizeAndInspect) {
  ScratchPlace place("tokens");
  std::ofstream(place / "a.jsonl") << "{\"text\": \"one fox\"}\n{\"text\": \"two foxes ran\"}\n";
  std::string tokenizer = place / "tokenizer.json", tokens = place / "a.bin";
  Outcome trained =
      run_command(fmt::format("data train-tokenizer {} --vocab 300 --out {}", place / "a.jsonl", tokenizer));
  ASSERT_EQ(trained.code, 0) << trained.output;
  Outcome written =
      run_command(fmt::format("data tokenize {} --tokenizer {} --out {}", place / "a.jsonl", tokenizer, tokens));
  ASSERT_EQ(written.code, 0) << written.output;
  EXPECT_NE(written.output.find("2 documents"), std::string::npos);
  Outcome shown = run_command(fmt::format("data inspect {} --tokenizer {}", tokens, tokenizer));
  ASSERT_EQ(shown.code, 0) << shown.output;
  EXPECT_NE(shown.output.find("one fox<|endoftext|>two foxes ran<|endoftext|>"), std::string::npos) << shown.output;
  Outcome json = run_command(fmt::format("data inspect {} --tokenizer {} --json", tokens, tokenizer));
  EXPECT_EQ(nlohmann::json::parse(json.output)["documents"], 2);
}

TEST(Verbs, ExplainPrintsEveryPass) {
  for (const char* pass : {"build", "infer", "autodiff", "recompute", "update", "partition", "memory", "freeze"}) {
    Outcome outcome = run_command(fmt::format("explain {} --after {}", config_path("tiny-gpt2.toml"), pass));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("How to read this")) << pass;
    EXPECT_NE(outcome.output.find("\ngraph gpt2, mesh") == std::string::npos,
              outcome.output.find("\nprogram gpt2 of pipeline rank 0, mesh") == std::string::npos)
        << pass;
  }
}

}  // namespace
}  // namespace sextant
