// A user's mistake gives one clear message with the place and the expected input, and exit code 2 or 3; no saved file
// is damaged.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>

#include "base/files.h"
#include "checkout.h"
#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

TEST(BadInput, CommandLine) {
  expect_refusal(run_command(""), 2, {"no verb is given; expected one of new, data, list, ", "sextant --help"});
  expect_refusal(run_command("bench"), 2, {"bench: no subcommand is given; expected one of gemm, "});
  expect_refusal(run_command("fly"), 2, {"no verb is called 'fly'"});
  expect_refusal(run_command("trian"), 2, {"did you mean train?"});
  expect_refusal(run_command("straggler"), 2, {"did you mean sextant plan --straggler?"});
  expect_refusal(run_command("train"), 2,
                 {"train: config is required", "the path of a run's TOML file", "docs/config.md"});
  std::string tiny = config_path("tiny-llama.toml");
  expect_refusal(run_command("train " + tiny + " --otu x"), 2, {"train: ", "--otu", "did you mean --out?"});
  expect_refusal(run_command("train " + tiny + " --steps 5"), 2, {"--steps", "given as train.steps=VALUE"});
  expect_refusal(run_command("train " + tiny + " device=gpu"), 2, {"did you mean cuda?"});
  expect_refusal(run_command("bench memory --save x"), 2, {"--save x", "NAME.toml"});
  EXPECT_EQ(run_command("--help").code, 0);
  EXPECT_EQ(run_command("train --help").code, 0);
}

TEST(BadInput, Config) {
  std::string tiny = config_path("tiny-llama.toml");
  expect_refusal(run_command("plan nowhere.toml"), 2, {"nowhere.toml", "file not found"});
  expect_refusal(run_command("plan " + tiny + " model.hiden=64"), 2, {"model.hiden", "model.hidden"});
  expect_refusal(run_command("plan " + tiny + " train.steps=many"), 2, {"train.steps", "integer"});
  expect_refusal(run_command("plan " + tiny + " model.heads=7"), 2, {"heads", "64"});
  expect_refusal(run_command("plan " + tiny + " model.heads=7 train.steps=-1 nope=1"), 2,
                 {"heads", "train.steps", "nope"});
  expect_refusal(run_command("explain " + tiny + " --after nothing"), 2, {"--after", "autodiff"});
  expect_refusal(run_command("train " + tiny + " device=cuda"), 2, {"device", "CUDA"});
  expect_refusal(run_command("train " + tiny + " mesh.tp=3"), 2, {"mesh.tp", "3 ranks"});
}

TEST(BadInput, ModelDirectories) {
  ScratchPlace place("models");
  expect_refusal(run_command("generate " + (place / "none")), 2, {place / "none", "Hugging Face"});
  expect_refusal(run_command("generate " + place.path().string()), 2, {"config.json"});

  ASSERT_EQ(run_command(tiny_train(place, "train.steps=2")).code, 0);
  std::string model = place / "run/step-000002", weights = model + "/model.safetensors";
  std::string good = read_file(weights);
  ASSERT_EQ(run_command("generate " + model + " --max-tokens 3").code, 0);

  write_text(weights, good.substr(0, good.size() / 2));
  expect_refusal(run_command("generate " + model), 2, {"model.safetensors"});
  write_text(weights, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + good.substr(8));
  expect_refusal(run_command("generate " + model), 2,
                 {"model.safetensors", "other content than was written", "manifest.json"});
  std::filesystem::remove(model + "/manifest.json");
  expect_refusal(run_command("generate " + model), 2, {"model.safetensors", "header"});
  write_text(weights, "");
  expect_refusal(run_command("generate " + model), 2, {"model.safetensors"});
  write_text(weights, good);
  write_text(model + "/config.json", "{\"model_type\": \"llama\", \"hidden_size\": 1e30}");
  expect_refusal(run_command("generate " + model), 2, {"config.json", "hidden_size"});
}

TEST(BadInput, Data) {
  ScratchPlace place("data");
  write_text(place / "odd.bin", "abc");
  std::string tiny = config_path("tiny-llama.toml");
  expect_refusal(run_command(fmt::format("train {} --out {} data.train={} model.vocab=512", tiny, place / "run",
                                         place / "odd.bin")),
                 2, {"odd.bin"});
  expect_refusal(run_command(fmt::format("data inspect {}", place / "odd.bin")), 2, {"odd.bin"});
  write_text(place / "bad.jsonl", "{\"text\": \"fine\"}\n{\"txt\": 3}\n");
  expect_refusal(run_command(fmt::format("data inspect {}", place / "bad.jsonl")), 2, {"bad.jsonl:2", "text"});
  write_text(place / "ids.bin", std::string(4000, '\xff'));
  expect_refusal(
      run_command(fmt::format("train {} --out {} data.train={} data.format=tokens-u16 model.vocab=512 batch.seq=16",
                              tiny, place / "run", place / "ids.bin")),
      2, {"ids.bin", "512"});
}

TEST(BadInput, UnreadableDirectory) {
  if (::getuid() != 0)
    GTEST_SKIP() << "only root can become somebody else; others are refused by the file system itself";
  ScratchPlace place("unreadable");
  ASSERT_EQ(run_command(tiny_train(place, "train.steps=1")).code, 0);
  fs::permissions(place.path() / "run", fs::perms::none);
  // The program is read through a copy, since the build may lie where nobody may look.
  fs::copy_file(checkout::kBinary, place.path() / "sextant");
  fs::permissions(place.path(), fs::perms::all);
  std::string as_nobody =
      fmt::format("cd / && setpriv --reuid=65534 --regid=65534 --clear-groups {} generate {} ; exit $? ;",
                  place / "sextant", place / "run");
  Outcome outcome = run_command("--version", as_nobody);
  expect_refusal(outcome, 2, {place / "run", "Permission denied"});
  fs::permissions(place.path() / "run", fs::perms::all);
}

// A disk that fills up while a checkpoint is written: what was saved before stays whole.
TEST(BadInput, FullDisk) {
  ScratchPlace place("full");
  bool tmpfs = ::getuid() == 0 && ::mount("tmpfs", place.path().c_str(), "tmpfs", 0, "size=6m") == 0;
  // Two checkpoints of this model do not fit into 6 MB; without a file system of our own, files are limited instead.
  std::string limit = tmpfs ? "" : "ulimit -f 3000 ; ";
  std::string bigger = tmpfs ? "model.hidden=128 model.ffn=256" : "model.hidden=256 model.ffn=512";
  std::string smaller = "model.hidden=128 model.ffn=256 train.steps=1";
  Outcome first = run_command(tiny_train(place, smaller));
  ASSERT_EQ(first.code, 0) << first.output;
  std::string before = read_file(place / "run/step-000001/model.safetensors");
  std::string more = tiny_train(place, bigger + " train.steps=4 checkpoint.every=1 checkpoint.keep=9");
  expect_refusal(run_command(more + " model.layers=3"), 2, {"layers 3 differs from the checkpoint's"});
  size_t out = more.find("--out");
  more.replace(out, more.find(' ', out + 6) - out, "--out " + (place / "second"));
  expect_refusal(run_command(more, limit), 3, {tmpfs ? "space" : "File too large"});
  EXPECT_EQ(run_command("generate " + (place / "run/step-000001") + " --max-tokens 2").code, 0);
  EXPECT_EQ(read_file(place / "run/step-000001/model.safetensors").size(), before.size());
  for (const auto& entry : fs::recursive_directory_iterator(place.path()))
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << entry.path();
  if (tmpfs) ::umount(place.path().c_str());
}

}  // namespace
}  // namespace sextant
