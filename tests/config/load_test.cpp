#include "config/load.h"
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "checkout.h"
#include "config/check.h"
#include "config/schema.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// The message about a config that is refused; "" when it is accepted.
std::string complaint_about(std::string_view toml, std::vector<std::string> overrides = {}) {
  try {
    parse_config(toml, "run.toml", overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

constexpr std::string_view kGpt2 = "[model]\npreset = \"gpt2\"\n";

std::string with_model(std::string_view rest) {
  return std::string(kGpt2) + std::string(rest);
}

TEST(LoadConfig, ValuesReachTheirFields) {
  RunConfig run = parse_config(R"(
name = "n"
device = "cpu"
[model]
architecture = "llama"
layers = 2
hidden = 64
heads = 4
tied_head = true
rope_scaling.factor = 2.5
[mesh]
dp = 2
zero = 3
sequence_parallel = true
[data]
train = ["a.txt", "b.txt"]
validation = "c.txt"
[batch]
sequences = 2e1
seq = 32
[optimizer]
lr = 1
[checkpoint]
resume = "runs/old"
)",
                               "run.toml");
  EXPECT_EQ(run.name, "n");
  EXPECT_EQ(run.device, DeviceChoice::cpu);
  EXPECT_EQ(run.model.given<&ModelSpec::architecture>(), "llama");
  EXPECT_EQ(run.model.given<&ModelSpec::hidden>(), 64);
  EXPECT_EQ(run.model.given<&ModelSpec::kv_heads>(), std::nullopt);
  EXPECT_EQ(run.model.given<&ModelSpec::tied_head>(), true);
  EXPECT_EQ(run.model.given<&RopeScaling::factor>(), 2.5);
  EXPECT_EQ(run.mesh.dp, 2);
  EXPECT_EQ(run.mesh.tp, 1);
  EXPECT_EQ(run.mesh.zero, 3);
  EXPECT_TRUE(run.mesh.sequence_parallel);
  EXPECT_EQ(run.data.train, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(run.data.validation, std::vector<std::string>{"c.txt"});
  EXPECT_EQ(run.batch.sequences, 20);
  EXPECT_EQ(run.optimizer.lr, 1.0);
  EXPECT_EQ(run.checkpoint.resume.text(), "runs/old");
}

TEST(LoadConfig, DefaultsAreThoseOfTheStruct) {
  RunConfig run = parse_config(kGpt2, "configs/my-run.toml"), plain;
  EXPECT_EQ(run.name, "my-run");
  EXPECT_EQ(run.mesh, plain.mesh);
  EXPECT_EQ(run.data, plain.data);
  EXPECT_EQ(run.batch, plain.batch);
  static_cast<OptimizerSettings&>(plain.optimizer) = optimizers::adamw.defaults;
  EXPECT_EQ(run.optimizer, plain.optimizer);
  EXPECT_EQ(run.train, plain.train);
  EXPECT_EQ(run.checkpoint, plain.checkpoint);
}

TEST(LoadConfig, PlacesAreRemembered) {
  std::vector<std::string> overrides{"train.steps=7"};
  RunConfig run = parse_config("name = \"x\"\n[model]\n  preset = \"gpt2\"\n", "run.toml", overrides);
  EXPECT_EQ(run.place_of("model.preset"), "run.toml:3:3 model.preset");
  EXPECT_EQ(run.place_of("train.steps"), "command line: train.steps=7");
  EXPECT_EQ(run.place_of("train.seed"), "train.seed (default)");
  EXPECT_TRUE(run.given("name"));
  EXPECT_FALSE(run.given("train.seed"));
}

TEST(LoadConfig, OverridesReplaceTheFile) {
  std::vector<std::string> overrides{"optimizer.lr=1e-3",
                                     "name=7",
                                     "data.train=[\"a\", \"b\"]",
                                     "device=cpu",
                                     "model.tied_head=false",
                                     "train.steps=5",
                                     "train.steps=6",
                                     "model.preset = gpt2-xl",
                                     "data.tokenizer=dir/tok.json",
                                     "data.validation=",
                                     "checkpoint.resume=a=b"};
  RunConfig run = parse_config("[model]\npreset = \"gpt2\"\n[optimizer]\nlr = 1\n", "run.toml", overrides);
  EXPECT_EQ(run.optimizer.lr, 1e-3);
  EXPECT_EQ(run.name, "7");  // a word, because the key wants one
  EXPECT_EQ(run.data.train, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(run.device, DeviceChoice::cpu);
  EXPECT_EQ(run.model.given<&ModelSpec::tied_head>(), false);
  EXPECT_EQ(run.train.steps, 6);
  EXPECT_EQ(run.model.preset, "gpt2-xl");
  EXPECT_EQ(run.data.tokenizer, "dir/tok.json");
  EXPECT_TRUE(run.data.validation.empty());
  EXPECT_EQ(run.checkpoint.resume.text(), "a=b");
}

TEST(LoadConfig, NoFileNeedsOnlyOverrides) {
  std::vector<std::string> overrides{"model.preset=llama3-8b"};
  RunConfig run = load_config("", overrides);
  EXPECT_EQ(run.model.preset, "llama3-8b");
  EXPECT_EQ(run.name, "run");
}

TEST(LoadConfig, UnknownKeys) {
  EXPECT_EQ(complaint_about(with_model("hiden = 3\n")),
            "run.toml:3:1 model.hiden: is not a known key\n  hint: did you mean model.hidden?");
  EXPECT_EQ(complaint_about(with_model("[train]\nlr = 3\n")),
            "run.toml:4:1 train.lr: is not a known key\n  hint: did you mean optimizer.lr?");
  EXPECT_EQ(complaint_about(with_model("[batch]\nzzzzz = 3\n")),
            "run.toml:4:1 batch.zzzzz: is not a known key\n"
            "  hint: [batch] has sequences, microbatch, seq");
  EXPECT_EQ(complaint_about("\"model.preset\" = 3\n" + std::string(kGpt2)),
            "run.toml:1:1 \"model.preset\": is not a known key\n  hint: did you mean model.preset?");
  EXPECT_EQ(complaint_about("colour = 3\n" + std::string(kGpt2)),
            "run.toml:1:1 colour: is not a known key\n"
            "  hint: keys are in sections, such as train.steps; known sections: model, mesh, pipeline, data, batch, "
            "optimizer, train, offload, checkpoint, log; docs/glossary.md has our keys by the names of other programs");
}

TEST(LoadConfig, UnknownSections) {
  // One complaint, however many keys the section has.
  EXPECT_EQ(complaint_about(with_model("[optimiser]\nlr = 3\nclip = 1\n")),
            "run.toml:3:2 optimiser: is not a known section\n  hint: did you mean [optimizer]?");
  EXPECT_EQ(complaint_about(with_model("[xyzzy]\nlr = 3\n")),
            "run.toml:3:2 xyzzy: is not a known section\n"
            "  hint: known sections: model, mesh, pipeline, data, batch, optimizer, train, offload, checkpoint, log; "
            "docs/glossary.md has our keys by the names of other programs");
  EXPECT_EQ(complaint_about("model = \"gpt2\"\n", {"model.preset=gpt2"}),
            "run.toml:1:1 model: got \"gpt2\"; expected a section of keys, [model]");
}

TEST(LoadConfig, WrongTypes) {
  EXPECT_EQ(complaint_about(with_model("[batch]\nsequences = \"eight\"\n")),
            "run.toml:4:1 batch.sequences: got \"eight\"; expected an integer from 1 to 1073741824");
  EXPECT_EQ(complaint_about(with_model("[batch]\nsequences = 1.5\n")),
            "run.toml:4:1 batch.sequences: got 1.5; expected an integer from 1 to 1073741824");
  EXPECT_EQ(complaint_about(with_model("[optimizer]\nlr = true\n")),
            "run.toml:4:1 optimizer.lr: got true; expected a number of at least 0");
  EXPECT_EQ(complaint_about(with_model("[mesh]\nsequence_parallel = 1\n")),
            "run.toml:4:1 mesh.sequence_parallel: got 1; expected true or false");
  EXPECT_EQ(complaint_about(with_model("[data]\ntrain = [1, 2]\n")),
            "run.toml:4:1 data.train: got a list of 2; expected a string or a list of strings");
  EXPECT_EQ(complaint_about(with_model("[data]\ncache = 2024-01-31\n")),
            "run.toml:4:1 data.cache: got the date 2024-01-31; expected a string");
  EXPECT_EQ(complaint_about(with_model("[train.steps]\n")),
            "run.toml:3:8 train.steps: got a table; expected an integer from 1 to 1000000000000");
}

TEST(LoadConfig, OutOfRange) {
  EXPECT_EQ(complaint_about(with_model("[mesh]\nzero = 4\n")),
            "run.toml:4:1 mesh.zero: got 4; expected an integer from 0 to 3");
  EXPECT_EQ(complaint_about(with_model("[train]\nlog_every = 0\n")),
            "run.toml:4:1 train.log_every: got 0; expected an integer of at least 1");
  EXPECT_EQ(complaint_about(with_model("[optimizer]\nbeta2 = 1\n")),
            "run.toml:4:1 optimizer.beta2: got 1; expected a number from 0 to below 1");
  EXPECT_EQ(complaint_about(with_model("[optimizer]\neps = 0\n")),
            "run.toml:4:1 optimizer.eps: got 0; expected a number above 0");
  EXPECT_EQ(complaint_about(with_model("[optimizer]\nlr = nan\n")),
            "run.toml:4:1 optimizer.lr: got nan; expected a number of at least 0");
  EXPECT_EQ(complaint_about(with_model("[optimizer]\nlr = inf\n")),
            "run.toml:4:1 optimizer.lr: got inf; expected a number of at least 0");
  EXPECT_EQ(complaint_about(with_model(""), {"device=gpu"}),
            "command line: device=gpu: got \"gpu\"; expected one of auto, cpu, cuda\n  hint: did you mean cuda?");
  EXPECT_EQ(complaint_about(with_model("[optimizer]\nname = \"adam\"\n")),
            "run.toml:4:1 optimizer.name: got \"adam\"; expected one of adamw, sgd, lion, adafactor, muon\n  hint: did "
            "you mean adamw?");
}

TEST(LoadConfig, BrokenToml) {
  EXPECT_EQ(complaint_about("[model]\nheads = 4\nheads = 5\n"),
            "run.toml:3:9: heads is given twice; expected each key and each table once");
  EXPECT_EQ(complaint_about("[model]\nheads = 4\n[model]\nlayers = 5\n"),
            "run.toml:3:1: model is given twice; expected each key and each table once");
  // The rest of these sentences is the TOML library's and may differ between its versions.
  EXPECT_EQ(complaint_about("[model]\nheads 4\n").find("run.toml:2:7: not valid TOML: expected '='"), 0);
  EXPECT_EQ(complaint_about("name = \"abc\n").find("run.toml:1:12: not valid TOML: "), 0);
  EXPECT_EQ(complaint_about("name = \"\xff\"\n").find("run.toml:1:"), 0);
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_EQ(complaint_about("\n" + deep + " = 1\n"), "run.toml:2: a key of too many parts; expected at most 64");
}

TEST(LoadConfig, BadOverrides) {
  EXPECT_EQ(complaint_about(kGpt2, {"train.steps"}), "command line: train.steps: has no '='; expected key=value");
  EXPECT_EQ(complaint_about(kGpt2, {"train.step=3"}),
            "command line: train.step=3: is not a known key\n  hint: did you mean train.steps?");
  EXPECT_EQ(complaint_about(kGpt2, {"hidden=64"}),
            "command line: hidden=64: is not a known key\n  hint: did you mean model.hidden?");
  EXPECT_EQ(complaint_about(kGpt2, {"train.steps=many"}),
            "command line: train.steps=many: got \"many\"; expected an integer from 1 to 1000000000000");
  EXPECT_EQ(complaint_about(kGpt2, {"name=\"x"}).find("command line: name=\"x: not valid TOML: "), 0);
  EXPECT_EQ(complaint_about(kGpt2, {"optimzer.lr=1"}),
            "command line: optimzer.lr=1: is not a known section\n  hint: did you mean [optimizer]?");
  EXPECT_EQ(complaint_about(kGpt2, {"train.steps=1\ntrain.seed=2"}),
            "command line: train.steps=1\\ntrain.seed=2: got \"1\\ntrain.seed=2\"; expected an integer from 1 to "
            "1000000000000");
}

TEST(LoadConfig, AllMistakesAtOnce) {
  EXPECT_EQ(
      complaint_about(
          "[model]\npreset = \"gpt2\"\nheads = 7\nffn = \"wide\"\n[optimizer]\nlr = -1\nmin_lr = 5\nwarmup = 300\n",
          {"device=tpu"}),
      "run.toml:4:1 model.ffn: got \"wide\"; expected an integer from 1 to 4194304\n"
      "run.toml:6:1 optimizer.lr: got -1; expected a number of at least 0\n"
      "command line: device=tpu: got \"tpu\"; expected one of auto, cpu, cuda\n"
      "  hint: did you mean cpu?\n"
      "run.toml:3:1 model.heads: heads 7 does not divide hidden 768; expected a divisor of 768\n"
      // min_lr against lr is not mentioned, because nobody knows what lr was meant to be
      "run.toml:8:1 optimizer.warmup: warmup 300 is longer than the 100 steps of the run; expected at most 100");
}

TEST(LoadConfig, UnreadableFiles) {
  auto complaint = [](const fs::path& path) -> std::string {
    try {
      load_config(path);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  fs::path dir = fs::path(testing::TempDir()) / "sextant_config_test";
  fs::create_directories(dir);
  EXPECT_EQ(complaint(dir / "absent.toml"),
            (dir / "absent.toml").string() +
                ": file not found; expected a run's TOML file\n  hint: `sextant list configs` lists those "
                "that come with the program, `sextant new` writes one");
  EXPECT_EQ(complaint(dir), dir.string() + ": is a directory; expected a file");
  fs::remove_all(dir);
}

TEST(LoadConfig, WrittenConfigReadsTheSame) {
  std::vector<std::string> overrides{"optimizer.lr=1e-3", "data.train=[\"a \\\"b\\\"\\n\", 'c\\d']",
                                     "model.rope_theta=1e20", "model.rope_scaling.factor=8",
                                     "mesh.sequence_parallel=true"};
  RunConfig run = parse_config("name = \"é\"\n[model]\npreset = \"llama3-8b\"\n", "run.toml", overrides);
  std::string text = config_toml(run);
  RunConfig again = parse_config(text, "again.toml");
  EXPECT_EQ(config_toml(again), text);
  for (const Key& key : schema()) EXPECT_EQ(key.get(again), key.get(run)) << key.name;
  for (const auto& [key, place] : run.places) EXPECT_TRUE(again.given(key)) << key;
  EXPECT_EQ(again.places.size(), run.places.size());
}

TEST(LoadConfig, CommittedConfigsAreSound) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(checkout::kSources) / "configs")) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace sextant
