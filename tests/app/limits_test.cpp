// Sizes out of all proportion, and files and names that are not what they should be: refused at once, by name, without
// harm to the terminal.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/files.h"
#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// Whatever hangs is ended, with exit code 124.
Outcome run_briefly(const std::string& arguments, const std::string& before = "") {
  return run_command(arguments, before + " timeout 60");
}

// A refusal that fits a screen and holds nothing that a terminal would act on.
void expect_short_refusal(const Outcome& outcome, int code, std::initializer_list<std::string> fragments) {
  expect_refusal(outcome, code, fragments);
  EXPECT_LT(outcome.output.size(), 6000u);
  for (char c : outcome.output) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
}

const std::string kTiny = config_path("tiny-llama.toml");

TEST(Limits, NumbersThatNoIntegerHolds) {
  std::string huge = "100000000000000000000";
  expect_short_refusal(run_briefly("data order " + kTiny + " --samples " + huge), 2, {"--samples", huge, "too large"});
  expect_short_refusal(run_briefly("generate nowhere --samples " + huge), 2, {"--samples", "too large"});
  expect_short_refusal(run_briefly("search " + kTiny + " --machine h100-sxm --devices " + huge), 2,
                       {"--devices", huge, "16777216"});
  expect_short_refusal(run_briefly("train " + kTiny + " --ranks -" + huge), 2, {"--ranks", "-" + huge});
}

TEST(Limits, NumbersThatNothingCouldBeDoneWith) {
  std::string many = "1000000000000000";
  expect_short_refusal(run_briefly("data order " + kTiny + " --samples " + many), 2, {"--samples", many, "1000000000"});
  expect_short_refusal(run_briefly("data order " + kTiny + " --samples=-3"), 2, {"--samples", "-3"});
  expect_short_refusal(run_briefly("generate nowhere --samples " + many), 2, {"--samples", "1000000000"});
  expect_short_refusal(run_briefly("search " + kTiny + " --machine h100-sxm --devices " + many), 2,
                       {"--devices", many, "16777216"});
  expect_short_refusal(run_briefly("doctor --burn 1e300"), 2, {"--burn"});
}

TEST(Limits, MoreMicrobatchesThanAScheduleHolds) {
  expect_short_refusal(run_briefly("plan " + kTiny + " batch.sequences=33000000"), 2,
                       {"batch.sequences", "8250000 microbatches", "65536", "batch.microbatch", "mesh.dp"});
  expect_short_refusal(
      run_briefly("plan " + kTiny + " batch.sequences=524288 batch.microbatch=1 model.layers=64 mesh.pp=64"), 2,
      {"batch.sequences", "32768 on 64 pipeline stages"});
  EXPECT_EQ(run_briefly("plan " + kTiny + " batch.sequences=262144").code, 0);
}

TEST(Limits, PublishedRunsOfImpossibleSize) {
  ScratchPlace place("published");
  std::string header =
      "source,gpu,arch,precision,layers,hidden,heads,ffn_hidden,vocab,seq,n_gpus,dp,tp,pp,global_batch_seqs,micro_"
      "batch,measured_iter_s,how_known\n";
  auto with = [&](const std::string& row) {
    std::ofstream(place / "runs.csv") << header << "Megatron,A100-80GB-SXM,gpt,fp16," << row << ",3.7,trust A\n";
    return run_briefly("validate " + (place / "runs.csv"));
  };
  expect_short_refusal(with("30,3072,32,12288,51200,2048,64,32,2,1,2147483648,16"), 2,
                       {"runs.csv:2", "global_batch_seqs", "at most"});
  expect_short_refusal(with("30,3072,32,12288,51200,2048,1,1,1,1,1000000000,1"), 2,
                       {"runs.csv:2", "global_batch_seqs", "65536"});
  expect_short_refusal(with("1000000000000,3072,32,12288,51200,2048,64,32,2,1,512,16"), 2,
                       {"runs.csv:2 layers", "16384"});
  EXPECT_EQ(with("30,3072,0,12288,51200,2048,64,32,2,1,512,0").code, 0);  // not predicted, and said so
}

TEST(Limits, InputsThatAreNoRegularFiles) {
  ScratchPlace place("pipes");
  std::string pipe = place / "pipe.toml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_short_refusal(run_briefly("plan " + pipe), 2, {pipe, "named pipe", "regular file"});
  expect_short_refusal(run_briefly("data inspect " + pipe), 2, {pipe, "regular file"});
  expect_short_refusal(run_briefly("validate " + pipe), 2, {pipe, "named pipe"});
  expect_short_refusal(run_briefly("plan /dev/zero"), 2, {"/dev/zero", "a device"});
  // A pipe that the shell connects is read to its end.
  EXPECT_EQ(run_briefly("plan /dev/stdin", "cat " + kTiny + " |").code, 0);
  expect_short_refusal(run_briefly("plan /dev/stdin", "yes '#' |"), 2, {"/dev/stdin", "pipe", "64.00 MiB"});
}

TEST(Limits, OutsideTextIsShownWithoutControls) {
  std::string red = "$(printf '\\033[31mx')";
  expect_short_refusal(run_briefly(red), 2, {"\\x1b[31mx"});
  expect_short_refusal(run_briefly("plan " + red), 2, {"\\x1b[31mx"});
  expect_short_refusal(run_briefly("plan " + kTiny + " --" + red), 2, {"\\x1b[31mx"});
  expect_short_refusal(run_briefly("plan " + kTiny + " " + red + "=1"), 2, {"\\x1b[31mx"});
  expect_short_refusal(run_briefly("generate " + red), 2, {"\\x1b[31mx"});
  std::string block = "$(printf '%060000d' 7)";
  expect_short_refusal(run_briefly(block), 2, {"0000", "shortened"});
  expect_short_refusal(run_briefly("plan " + kTiny + " --" + block), 2, {"0000", "shortened"});
  expect_short_refusal(run_briefly("plan " + kTiny + " train.steps=" + block), 2, {"train.steps", "shortened"});
}

TEST(Limits, NamesOnTheScreenHaveNoControlsEither) {
  ScratchPlace place("names");
  std::string text = place / "te\x1b[31mxt.txt";
  std::ofstream(text) << std::string(20000, 'a') << '\n';
  Outcome outcome = run_briefly(tiny_train(place, fmt::format("train.steps=1 'data.train={}'", text)));
  EXPECT_EQ(outcome.output.find('\x1b'), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("\\x1b[31mxt.txt"), std::string::npos) << outcome.output;
}

TEST(Limits, ModelTooLargeIsRefusedBeforeDataIsRead) {
  ScratchPlace place("large");
  std::ofstream(place / "run.toml")
      << "[model]\npreset = \"llama3-70b\"\nvocab = 512\n[data]\ntrain = \"stories\"\ntokenizer_vocab = 512\n";
  Outcome outcome =
      run_briefly(fmt::format("train {0}/run.toml --out {0}/run data.cache={0}/cache device=cpu batch.sequences=1 "
                              "batch.microbatch=1 batch.seq=64",
                              place.path().string()));
  expect_short_refusal(outcome, 8, {"GiB"});
  EXPECT_EQ(outcome.output.find("tokeniz"), std::string::npos) << outcome.output;
  EXPECT_FALSE(fs::exists(place / "cache"));
}

TEST(Limits, RunStateOfAnImpossibleRun) {
  ScratchPlace place("state");
  ASSERT_EQ(run_command(tiny_train(place, "train.steps=2")).code, 0);
  std::string file = place / "run/step-000002/run_state.json", good = read_file(file);
  auto with = [&](const std::string& state) {
    std::ofstream(file) << state;
    return run_briefly(tiny_train(place, "train.steps=3"));
  };
  expect_short_refusal(with("{\"format\": 1, \"step\": 2, \"samples\": 9223372036854775800, \"tokens\": 1024}"), 2,
                       {"run_state.json", "samples", "damaged"});
  expect_short_refusal(
      with("{\"format\": 1, \"step\": 2, \"samples\": 9223372036854775800, \"tokens\": 9223372036854775807}"), 2,
      {"run_state.json"});
  expect_short_refusal(with("{\"format\": 1, \"step\": 2, \"samples\": 18446744073709551615, \"tokens\": 1024}"), 2,
                       {"run_state.json", "samples"});
  std::ofstream(file) << good;
  EXPECT_EQ(run_command(tiny_train(place, "train.steps=3")).code, 0);
}

TEST(Limits, ThreadsThatCannotBeStarted) {
  expect_short_refusal(run_briefly("generate nowhere --threads 100000"), 2, {"--threads", "4096"});
  expect_short_refusal(run_briefly("train " + kTiny + " train.threads=100000"), 2, {"train.threads", "4096"});
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more addresses than the limit below";
#endif
  // Each thread reserves its stack, so room for addresses bounds them for any user, root too.
  ScratchPlace place("threads");
  Outcome outcome =
      run_briefly(tiny_train(place, "train.steps=1 train.threads=4096"), "ulimit -s 65536; ulimit -v 4000000;");
  expect_short_refusal(outcome, 3, {"could not start the thread of worker", "of 4096", "train.threads", "ulimit"});
}

}  // namespace
}  // namespace sextant
