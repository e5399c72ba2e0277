// Files that grow, are torn, cut, replaced or removed while they are followed.
#include <gtest/gtest.h>

#include "run_files.h"
#include "watch/line_tail.h"
#include "watch/run_set.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

struct Followed {
  explicit Followed(const fs::path& path) : tail(path) {}
  LineTail tail;
  std::vector<std::string> lines;
  int restarts = 0;

  LineTail::Change read(size_t budget = 1 << 20) {
    return tail.read(
        budget,
        [this] {
          lines.clear();
          ++restarts;
        },
        [this](std::string_view line) { lines.emplace_back(line); });
  }
};

TEST(FollowedFile, HandsOverWholeLinesOnly) {
  RunFiles files("tail");
  Followed followed(files / "log");
  EXPECT_EQ(followed.read(), LineTail::Change::none);
  files.append("log", "one\ntw");
  EXPECT_EQ(followed.read(), LineTail::Change::grown);
  EXPECT_EQ(followed.lines, (std::vector<std::string>{"one"}));
  files.append("log", "o\nthree\n");
  followed.read();
  EXPECT_EQ(followed.lines, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(followed.read(), LineTail::Change::none);
  EXPECT_EQ(followed.restarts, 0);
}

TEST(FollowedFile, BeginsAgainWhereTheFileIsAnother) {
  RunFiles files("tail-again");
  files.write("log", "one\ntwo\nthree\n");
  Followed followed(files / "log");
  followed.read();
  files.write("log", "one\n");  // cut
  EXPECT_EQ(followed.read(), LineTail::Change::restarted);
  EXPECT_EQ(followed.lines, (std::vector<std::string>{"one"}));
  files.write("log", "ONE\ntwo, and longer than before\n");  // written anew, longer
  followed.read();
  EXPECT_EQ(followed.lines, (std::vector<std::string>{"ONE", "two, and longer than before"}));
  files.write("other", "x\nONE\ntwo, and longer than before\nmore\n");
  fs::rename(files / "other", files / "log");  // replaced
  followed.read();
  EXPECT_EQ(followed.lines.size(), 4u);
  EXPECT_EQ(followed.restarts, 3);
  fs::remove(files / "log");
  EXPECT_EQ(followed.read(), LineTail::Change::gone);
  EXPECT_TRUE(followed.lines.empty());
}

TEST(FollowedFile, ReadsInPartsAndLeavesOutEndlessLines) {
  RunFiles files("tail-parts");
  files.write("log", std::string(3 << 20, 'x') + "\nshort\n");
  Followed followed(files / "log");
  int rounds = 0;
  do followed.read(1 << 18), ++rounds;
  while (followed.tail.has_more() && rounds < 100);
  EXPECT_GT(rounds, 5);
  EXPECT_EQ(followed.lines, (std::vector<std::string>{"short"}));
}

TEST(FollowedFile, FollowsNoLinkAndNoPipe) {
  RunFiles files("tail-link");
  files.write("secret", "secret\n");
  fs::create_symlink(files / "secret", files / "log");
  Followed linked(files / "log"), folder(files.path());
  linked.read();
  folder.read();
  EXPECT_TRUE(linked.lines.empty());
  EXPECT_TRUE(folder.lines.empty());
}

TEST(RunSetTest, FindsRunsAddsNewOnesAndDropsThoseThatAreGone) {
  RunFiles files("set"), elsewhere("set-elsewhere");
  files.write("a/metrics.jsonl", metrics_line(1, 5));
  files.write("group/b/events.jsonl", "");
  files.write("group/b/inner/metrics.jsonl", metrics_line(1, 5));  // inside of a run: not looked for
  files.write("notes/readme.txt", "no run");
  elsewhere.write("c/metrics.jsonl", metrics_line(1, 5));
  fs::create_directory_symlink(elsewhere / "c", files / "linked");
  RunSet runs({files.path()});
  runs.read_all();
  ASSERT_EQ(runs.runs().size(), 2u);
  EXPECT_EQ(runs.runs()[0]->name(), "a");
  EXPECT_EQ(runs.runs()[1]->name(), "group/b");
  int a = runs.runs()[0]->id();
  files.write("0/metrics.jsonl", metrics_line(1, 5));
  EXPECT_TRUE(runs.rescan());
  EXPECT_FALSE(runs.rescan());
  EXPECT_EQ(runs.runs()[0]->name(), "0");
  EXPECT_EQ(runs.find(a)->name(), "a");  // ids stay
  fs::remove_all(files / "a");
  EXPECT_TRUE(runs.rescan());
  EXPECT_EQ(runs.find(a), nullptr);
}

TEST(RunSetTest, ARunNamedByALinkIsOne) {
  RunFiles files("set-link");
  files.write("a/metrics.jsonl", metrics_line(1, 5));
  fs::create_directory_symlink(files / "a", files / "latest");
  RunSet runs({files / "latest"});
  runs.read_all();
  ASSERT_EQ(runs.runs().size(), 1u);
  EXPECT_EQ(runs.runs()[0]->columns().rows(), 1u);
}

TEST(WatchedRunState, FollowsEventsAndTime) {
  RunFiles files("state");
  files.write("r/events.jsonl", R"({"time":"t","event":"start","step":1,"text":"x"})"
                                "\n");
  WatchedRun run(1, files / "r", "r");
  run.poll(1 << 20);
  int64_t now = run.modified();
  EXPECT_EQ(run.state(now), WatchedState::waiting);
  files.append("r/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4));
  run.poll(1 << 20);
  EXPECT_EQ(run.state(now), WatchedState::running);
  EXPECT_EQ(run.state(now + 10000), WatchedState::silent);
  files.append("r/events.jsonl", R"({"time":"t","event":"failure","step":2,"text":"x"})"
                                 "\n");
  run.poll(1 << 20);
  EXPECT_EQ(run.state(now), WatchedState::failed);
  files.append("r/events.jsonl", R"({"time":"t","event":"resume","step":2,"text":"x"})"
                                 "\n");
  run.poll(1 << 20);
  EXPECT_EQ(run.state(now), WatchedState::running);
  files.append("r/events.jsonl", R"({"time":"t","event":"finish","step":2,"text":"x"})"
                                 "\n"
                                 R"({"time":"t","event":"note","text":"x"})"
                                 "\n");
  run.poll(1 << 20);
  EXPECT_EQ(run.state(now + 10000), WatchedState::finished);
}

}  // namespace
}  // namespace sextant
