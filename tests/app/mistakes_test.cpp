// Slips of the hand and surroundings that do not fit: the message says what is wrong, where, and what was probably
// meant.
#include <gtest/gtest.h>
#include <unistd.h>

#include "checkout.h"
#include "expectations.h"
#include "started_command.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

TEST(Mistakes, NamesThatAreNearlyRight) {
  std::string tiny = config_path("tiny-llama.toml");
  struct Slip {
    std::string command;
    std::vector<std::string> says;
  };
  for (const Slip& slip : std::vector<Slip>{
           {"tokenize a.txt", {"no verb is called 'tokenize'", "did you mean sextant data tokenize?"}},
           {"bench gem", {"bench: no subcommand is called 'gem'; expected one of gemm, ", "did you mean gemm?"}},
           {"data tokenise a.txt", {"no subcommand is called 'tokenise'", "did you mean tokenize?"}},
           {"help trian", {"no verb is called 'trian'", "did you mean train?"}},
           {"help bench gem", {"did you mean gemm?"}},
           {"man trian", {"did you mean train?"}},
           {"--verison", {"'--verison' is not an option of sextant itself", "did you mean --version?"}},
           {"-q", {"options of a verb stand behind it: sextant VERB -q"}},
           {"generate x --temprature 1", {"generate: '--temprature' is not an option", "did you mean --temperature?"}},
           {"schema more", {"'more' is one argument too many"}},
           {"explain " + tiny + " --after freze", {"did you mean freeze?"}},
           {"plan " + tiny + " --machine h100-sxn", {"did you mean h100-sxm?"}},
           {"plan " + tiny + " --machine h100", {"did you mean h100-96-500w, h100-nvl, h100-pcie or h100-sxm?"}},
           {"plan " + tiny + " --machine H100-SXM", {"did you mean h100-sxm?"}},
           {"plan " + tiny + " --machine H100", {"did you mean h100-96-500w, h100-nvl, h100-pcie or h100-sxm?"}},
           {"train " + tiny + " --resume", {"here it is checkpoint.resume: the same command resumes"}},
           {"train " + tiny + " --lr 1e-3",
            {"here it is optimizer.lr; keys of the config are given as optimizer.lr=VALUE"}},
           {"train " + tiny + " gradient_accumulation_steps=4", {"is not a known key", "here it is batch.sequences"}},
           {"train " + tiny + " train.epochs=3", {"is not a known key", "here it is train.steps: one epoch is"}},
           {"pretrain " + tiny, {"no verb is called 'pretrain'", "here it is sextant train"}},
           {"models", {"here it is sextant list models"}},
           {"chat x", {"the verb chat is not implemented", "`sextant generate` writes text"}},
           {"watch x --export page.html", {"'--export' is not an option", "it is called --html now"}},
           {"plan " + tiny + " --report=page.html", {"it is called --html now"}},
           {"plan " + tiny + " train.precision=bfloat16", {"did you mean bf16?"}},
           {"plan " + tiny + " train.recompute=true", {"did you mean full?"}},
           {"plan " + tiny + " num_steps=100", {"here it is train.steps"}},
           {"plan " + tiny + " load=x", {"here it is checkpoint.resume"}},
           {"plan " + tiny + " num_experts_per_tok=2", {"here it is model.experts.per_token"}},
           {"plan " + tiny + " --num-query-groups 2", {"here it is model.kv_heads"}},
           {"plan " + tiny + " attn_implementation=sdpa", {"here it is no key: kernels"}},
           {"plan " + tiny + " lora_r=8", {"here it is not implemented: neither adapters"}},
           {"plan " + tiny + " report_to=wandb", {"here it is sextant watch RUNS --forward wandb"}},
           {"plan " + tiny + " colour=2", {"keys are in sections, such as train.steps", "docs/glossary.md"}},
           {"plan " + tiny + " data.train=wikitext", {"wikitext: file not found", "nothing is downloaded"}},
           {"plan " + tiny + " data.train=nowhere.bin", {"nowhere.bin: file not found"}},
           {"plan " + tiny + " data.tokenizer=gpt2", {"is not used, because data.tokenizer", "nothing is downloaded"}},
           {"plan " + tiny + " training.local_batch_size=2", {"here it is batch.microbatch"}},
           {"plan " + tiny + " zero_optimization.stage=2", {"here it is mesh.zero"}},
           {"plan " + tiny + " parallelism.tp=2", {"is not a known key", "did you mean mesh.tp?"}},
           {"plan " + tiny + " --tensor-model-parallel-size 2", {"here it is mesh.tp"}},
           {"plan " + tiny + " --machine h200 --software megatorn-2021", {"did you mean megatron-2021?"}},
           {"new --preset lama-7b", {"--preset lama-7b", "did you mean llama-7b?"}},
           {"plan " + config_path("tiny-lama.toml"), {"file not found", "did you mean " + tiny + "?"}},
           {"plan tiny-llama", {"file not found", "did you mean " + tiny + "?"}},
           {"plan no-such-thing-at-all.toml", {"sextant list configs", "sextant new"}},
           {"plan model.preset=gpt2", {"file not found", "the config comes first, key=value pairs behind it"}},
           {"list", {"what is required", "machines"}},
           {"train", {"config is required", "TOML"}},
           {"train " + tiny + " --ranks 0", {"--ranks 0; expected a whole number of ranks from 1 to 16777216"}},
           {"bench gemm --seconds 0", {"--seconds 0; expected a number of seconds from 0.001 to 3600\n"}},
           {"generate x --prompt", {"generate: --prompt has no value; expected a text\n", "text to go on from"}},
           {"doctor --burn -3", {"--burn -3; expected a number of seconds from 0 to 1000000\n"}}})
    for (const std::string& words : slip.says) expect_refusal(run_command(slip.command), 2, {words});
}

// In a config whose vocabulary is that of a tokenizer that the run trains.
TEST(Mistakes, DataUnderOtherNames) {
  ScratchPlace place("data-names");
  for (const char* name : {"notes", "notes.md"}) {
    write_text(place / name, "Some text that somebody wrote down.\n");
    for (const char* verb : {"plan ", "train "})
      expect_refusal(run_command(verb + config_path("tiny-llama.toml") + " data.train=" + (place / name)), 2,
                     {(place / name) + ": ", "name it .txt, or set data.format = \"text\""});
  }
  write_text(place / "tokens.u16", "abcd");
  expect_refusal(run_command("plan " + config_path("tiny-llama.toml") + " data.train=" + (place / "tokens.u16")), 2,
                 {"token files do not say how many ids there are"});
}

TEST(Mistakes, FilesThatCannotBeWritten) {
  ScratchPlace place("unwritable");
  std::string tiny = config_path("tiny-llama.toml"), folder = place.path().string(), missing = place / "none/file";
  write_text(place / "text.txt", "some text");
  // Found before the work: nothing else is printed.
  for (const std::string& command :
       {"plan " + tiny + " --html ", "plan " + tiny + " --mesh ", "explain " + tiny + " --timeline ",
        "data train-tokenizer " + (place / "text.txt") + " --out ", std::string("new --preset gpt2 --out ")}) {
    Outcome is_folder = run_command(command + folder), has_none = run_command(command + missing);
    expect_refusal(is_folder, 2, {folder + ": is a directory; expected the name of a file to write"});
    expect_refusal(has_none, 2, {missing + ": there is no directory " + (place / "none"), "make it first"});
    EXPECT_TRUE(has_none.output.starts_with("sextant: --")) << has_none.output;
  }
  expect_refusal(run_command("train " + folder), 2, {folder + ": is a directory; expected a file"});
  for (const char* below : {"", "/run"})
    expect_refusal(run_command(fmt::format("train {} --out {}{}", tiny, place / "text.txt", below)), 2,
                   {(place / "text.txt") + ": is a file; expected a directory", "--out"});
  expect_refusal(run_command("data trace " + (place / "none") + " --step 1"), 2, {"directory not found"});
}

TEST(Mistakes, FoldersOfOthers) {
  ScratchPlace place("others");
  std::string as_nobody = ::getuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  fs::create_directory(place.path() / "theirs");
  fs::permissions(place.path() / "theirs", fs::perms::owner_read | fs::perms::owner_exec);
  std::string sextant = as_nobody + checkout::kBinary;
  if (std::system((sextant + " --version > /dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "the program cannot be run as another user here";
  auto run = [&](const std::string& arguments) {
    return run_command(fmt::format("--version > /dev/null; {} {}", sextant, arguments));
  };
  expect_refusal(run("data train-tokenizer stories --out " + (place / "theirs/t.json")), 2,
                 {"cannot write in " + (place / "theirs") + ": Permission denied", "change who may write there"});
  expect_refusal(run(fmt::format("train {} --out {}", config_path("tiny-llama.toml"), place / "theirs/run")), 3,
                 {"cannot create the run's directory: Permission denied", "choose another with --out"});
}

// Most of what is printed reaches the file only at the end.
TEST(Mistakes, AFullDiskBehindStandardOutput) {
  for (const char* verb : {"list machines", "schema", "help train"})
    expect_refusal(run_command(std::string(verb) + " > /dev/full"), 3,
                   {"standard output: cannot write: No space left on device"});
}

// As a terminal would show it.
std::string on_terminal(const std::string& arguments, const std::string& environment) {
  return run_command(fmt::format("--version > /dev/null; {} script -qec '{} {}' /dev/null", environment,
                                 checkout::kBinary, arguments))
      .output;
}

TEST(Mistakes, AreColouredOnTerminalsOnly) {
  if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "script(1) is not installed";
  const std::string red = "\033[1;31msextant:\033[0m ", escape = "\033[";
  EXPECT_NE(on_terminal("trian", "TERM=xterm NO_COLOR=").find(red), std::string::npos);
  for (const char* environment : {"TERM=xterm NO_COLOR=1", "TERM=dumb NO_COLOR="})
    EXPECT_EQ(on_terminal("trian", environment).find(escape), std::string::npos) << environment;
  EXPECT_EQ(run_command("trian", "export TERM=xterm;").output.find(escape), std::string::npos);
  EXPECT_NE(on_terminal("doctor", "TERM=xterm NO_COLOR=").find("\033[32mok"), std::string::npos);
  EXPECT_EQ(on_terminal("doctor", "TERM=xterm NO_COLOR=1").find(escape), std::string::npos);
}

TEST(Mistakes, AnInterruptedTokenizerLeavesNothingBehind) {
  ScratchPlace place("interrupted");
  ASSERT_EQ(run_command("data train-tokenizer stories --vocab 300 --out " + (place / "t.json")).code, 0);
  std::string line = "{\"text\": \"One day a cat sat on a mat, and then it sat there for the whole of the day.\"}\n",
              many;
  for (int i = 0; i < 400'000; ++i) many += line;
  write_text(place / "many.jsonl", many);
  fs::create_directory(place.path() / "out");
  StartedCommand run(fmt::format("exec {} data tokenize {} --tokenizer {} --threads 1 --out {}", checkout::kBinary,
                                 place / "many.jsonl", place / "t.json", place / "out/many.bin"),
                     place / "log");
  ASSERT_TRUE(comes_true([&] { return !fs::is_empty(place.path() / "out"); })) << run.output();
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 5) << run.output();
  expect_words(run.output(), {"many.bin: stopped by a signal: nothing was written"});
  EXPECT_TRUE(fs::is_empty(place.path() / "out"));
}

}  // namespace
}  // namespace sextant
