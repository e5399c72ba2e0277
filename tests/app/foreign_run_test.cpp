// The folder of a run in which somebody else has written: links do not lead the program to other files, and texts do
// not move the terminal that shows them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.h"
#include "checkout.h"
#include "expectations.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class ForeignRun : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) const {
    fs::path path = place_.path() / name;
    fs::create_directories(path.parent_path());
    write_text(path.string(), text);
    return path.string();
  }
  ScratchPlace place_{"foreign"};
};

TEST_F(ForeignRun, NothingIsWrittenThroughALink) {
  constexpr std::string_view kKept = "not of the run\n";
  for (const char* name : {"events.jsonl", "metrics.jsonl", "injected-faults", "heartbeat/rank-0.json",
                           "ops/rank-0.jsonl", "on_event.log", "plan.json", "config.toml"}) {
    fs::remove_all(place_.path() / "run");
    std::string target = write("target", kKept);
    fs::path link = place_.path() / "run" / name;
    fs::create_directories(link.parent_path());
    fs::create_symlink(target, link);
    std::string often = std::string(name).starts_with("ops/") ? " log.profile_every=1" : "";
    Outcome outcome =
        run_command(tiny_train(place_, "train.steps=2 --quiet --inject nan@1 'log.on_event=cat'" + often));
    EXPECT_EQ(read_file(target), kKept) << name << "\n" << outcome.output;
    EXPECT_LT(outcome.code, 128) << name << "\n" << outcome.output;
  }
}

TEST_F(ForeignRun, NoFolderOfARunIsALink) {
  for (const char* name : {"heartbeat", "ops", "tensorboard"}) {
    fs::remove_all(place_.path() / "run");
    fs::remove_all(place_.path() / "elsewhere");
    write("elsewhere/kept.sextant", "not of the run\n");
    fs::create_directories(place_.path() / "run");
    fs::create_directory_symlink(place_.path() / "elsewhere", place_.path() / "run" / name);
    Outcome outcome = run_command(tiny_train(place_, "train.steps=2 --quiet log.profile_every=1 log.tensorboard=true"));
    EXPECT_LT(outcome.code, 128) << name << "\n" << outcome.output;
    std::vector<fs::path> found(fs::directory_iterator(place_.path() / "elsewhere"), fs::directory_iterator());
    EXPECT_EQ(found, (std::vector<fs::path>{place_.path() / "elsewhere/kept.sextant"})) << name << outcome.output;
  }
}

TEST_F(ForeignRun, APipeInPlaceOfAFileIsNotWaitedFor) {
  fs::create_directories(place_.path() / "run");
  ASSERT_EQ(::mkfifo((place_ / "run/events.jsonl").c_str(), 0600), 0);
  Outcome outcome = run_command(tiny_train(place_, "train.steps=2 --quiet"), "timeout 120");
  EXPECT_NE(outcome.code, 124) << outcome.output;
  outcome = run_command("log " + (place_ / "run") + " --note now", "timeout 120");
  expect_refusal(outcome, 3, {"cannot open for writing"});
}

// A terminal obeys ESC and the C1 controls, in one byte or as UTF-8.
void expect_plain(const Outcome& outcome, const std::string& command) {
  EXPECT_NE(outcome.output.find("evil"), std::string::npos) << command << "\n" << outcome.output;
  for (const char* control : {"\x1b", "\x07", "\x7f", "\xc2\x9b"})
    EXPECT_EQ(outcome.output.find(control), std::string::npos) << command << "\n" << outcome.output;
}

TEST_F(ForeignRun, TextsOfARunAreShownWithoutControls) {
  // As JSON escapes them, and as they are.
  for (const char* evil : {"evil \\u001b]0;title\\u0007 \\u009b31m \\u007f",
                           "evil \xc2\x9b"
                           "31m \x7f"}) {
    write(
        "run/events.jsonl",
        fmt::format("{{\"time\":\"{0}\",\"event\":\"failure\",\"step\":2,\"text\":\"{0}\",\"why\":\"{0}\"}}\n", evil));
    write("run/metrics.jsonl", "{\"step\":1,\"loss\":5,\"tokens\":100,\"step_s\":0.5}\n");
    write(
        "run/heartbeat/rank-0.json",
        fmt::format("{{\"rank\":0,\"host\":\"{0}\",\"time\":\"{0}\",\"state\":\"failed\",\"reason\":\"{0}\",\"pid\":7,"
                    "\"step\":2,\"action\":\"{0}\",\"op\":\"{0}\",\"beside\":\"{0}\",\"waiting_for\":-1}}",
                    evil));
    for (const char* command : {"log ", "log --json ", "doctor ", "doctor --json "}) {
      std::string line = command + (place_ / "run");
      expect_plain(run_command(line), line);
    }
  }
}

}  // namespace
}  // namespace sextant
