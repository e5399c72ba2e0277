// Directories that appear whole or not at all: crashes, full disks and locked doors included.
#include "ckpt/staged_directory.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/files.h"
#include "base/rng.h"
#include "base/temporary_name.h"
#include "ckpt/weights_writer.h"
#include "scratch.h"

namespace sextant {
namespace {

using StagedDirectoryTest = Scratch;

namespace fs = std::filesystem;

// Runs the body in a process of its own; its exit code, or minus the signal that ended it.
int in_child(const std::function<int()>& body) {
  pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

// The number of a process that has ended.
pid_t dead_process() {
  pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST_F(StagedDirectoryTest, AppearsWholeOnCommit) {
  fs::path place = root / "a" / "step-000001";
  StagedDirectory staged(place, Existing::refuse);
  write_text(staged.path() / "weights", "new");
  write_text(staged.path() / "deep" / "state", "s");
  EXPECT_EQ(staged.final_place(), place);
  ASSERT_EQ(names_in(root / "a").size(), 1u);
  EXPECT_EQ(parse_temporary_name(names_in(root / "a")[0])->final_name, "step-000001");
  staged.commit();
  EXPECT_EQ(names_in(root / "a"), (Names{"step-000001"}));
  EXPECT_EQ(read_file(place / "weights"), "new");
  EXPECT_EQ(read_file(place / "deep" / "state"), "s");
  EXPECT_THROW(staged.commit(), Bug);
}

TEST_F(StagedDirectoryTest, NothingRemainsWithoutCommit) {
  {
    StagedDirectory staged(root / "out", Existing::refuse);
    write_text(staged.path() / "weights", "half");
  }
  EXPECT_EQ(names_in(root), Names{});
}

TEST_F(StagedDirectoryTest, ReplacesWhatWasThere) {
  for (Replacing replacing : {Replacing::exchange, Replacing::two_renames}) {
    write_text(root / "out" / "weights", "old");
    write_text(root / "out" / "only-old", "x");
    StagedDirectory staged(root / "out/", Existing::replace);
    write_text(staged.path() / "weights", "new");
    EXPECT_EQ(read_file(root / "out" / "weights"), "old");
    staged.commit(replacing);
    EXPECT_EQ(names_in(root), Names{"out"});
    EXPECT_EQ(names_in(root / "out"), Names{"weights"});
    EXPECT_EQ(read_file(root / "out" / "weights"), "new");
  }
}

// As runs that are started together fill the same cache: each commits, and none removes what another is writing.
TEST_F(StagedDirectoryTest, SeveralProcessesMayWriteTheSamePlaceAtOnce) {
  constexpr int kProcesses = 4, kEach = 40;
  fs::path place = root / "shared";
  EXPECT_EQ(in_child([&] {
              std::vector<pid_t> children;
              for (int p = 0; p < kProcesses; ++p) {
                children.push_back(::fork());
                if (children.back() != 0) continue;
                try {
                  for (int i = 0; i < kEach; ++i) {
                    StagedDirectory staged(place, Existing::replace);
                    write_file_atomically(staged.path() / "file", "whole");
                    staged.commit();
                  }
                } catch (const std::exception& error) {
                  fmt::print(stderr, "{}\n", error.what());
                  ::_exit(1);
                }
                ::_exit(0);
              }
              int failed = 0;
              for (pid_t child : children) {
                int status = 0;
                ::waitpid(child, &status, 0);
                failed += status == 0 ? 0 : 1;
              }
              return failed;
            }),
            0);
  EXPECT_EQ(read_file(place / "file"), "whole");
  EXPECT_EQ(names_in(root), Names{"shared"});
}

TEST_F(StagedDirectoryTest, RefusesToReplaceUnlessTold) {
  write_text(root / "out" / "thesis.txt", "mine");
  EXPECT_IN("holds files already",
            message_of<UserError>([&] { StagedDirectory staged(root / "out", Existing::refuse); }));
  write_text(root / "file", "mine");
  EXPECT_IN("this is a file", message_of<UserError>([&] { StagedDirectory staged(root / "file", Existing::replace); }));
  EXPECT_EQ(names_in(root), (Names{"file", "out"}));
  fs::create_directory(root / "empty");
  StagedDirectory staged(root / "empty", Existing::refuse);
  write_text(staged.path() / "a", "1");
  staged.commit();
  EXPECT_EQ(names_in(root / "empty"), Names{"a"});
}

TEST_F(StagedDirectoryTest, RefusesALinkAndLeavesWhatItPointsTo) {
  write_text(root / "disk" / "out" / "weights", "old");
  fs::create_directory_symlink(root / "disk" / "out", root / "out");
  EXPECT_IN("symbolic link", message_of<UserError>([&] { StagedDirectory staged(root / "out", Existing::replace); }));
  EXPECT_TRUE(fs::is_symlink(root / "out"));
  EXPECT_EQ(read_file(root / "disk" / "out" / "weights"), "old");
  EXPECT_EQ(names_in(root), (Names{"disk", "out"}));
}

// The directory of all runs is often a link to a larger disk.
TEST_F(StagedDirectoryTest, FollowsLinksAboveIt) {
  fs::create_directories(root / "disk");
  fs::create_directory_symlink(root / "disk", root / "runs");
  StagedDirectory staged(root / "runs" / "out", Existing::refuse);
  write_text(staged.path() / "weights", "new");
  staged.commit();
  EXPECT_EQ(read_file(root / "disk" / "out" / "weights"), "new");
}

TEST_F(StagedDirectoryTest, AKilledProcessLeavesTheOldOneWholeAndALeftoverThatIsCleaned) {
  write_text(root / "out" / "weights", "old");
  int end = in_child([&] {
    StagedDirectory staged(root / "out", Existing::replace);
    write_text(staged.path() / "weights", "half");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(end, -SIGKILL);
  EXPECT_EQ(read_file(root / "out" / "weights"), "old");
  EXPECT_EQ(names_in(root).size(), 2u);
  recover_directory(root);
  EXPECT_EQ(names_in(root), Names{"out"});
}

TEST_F(StagedDirectoryTest, CleansItsOwnPlaceEvenWithAReusedProcessNumber) {
  write_text(root / fmt::format("out.tmp-{}", ::getpid()) / "staged" / "weights", "half");
  write_text(root / fmt::format("other.tmp-{}", dead_process()) / "staged" / "weights", "half");
  StagedDirectory staged(root / "out", Existing::refuse);
  write_text(staged.path() / "weights", "new");
  staged.commit();
  EXPECT_EQ(names_in(root / "out"), Names{"weights"});
  EXPECT_EQ(names_in(root).size(), 2u);  // the other place is not ours to clean
}

TEST_F(StagedDirectoryTest, LeavesTheLivingAlone) {
  StagedDirectory staged(root / "out", Existing::refuse);
  write_text(staged.path() / "weights", "new");
  recover_directory(root);
  EXPECT_EQ(in_child([&] {
              recover_directory(root);
              return 0;
            }),
            0);
  { StagedDirectory second(root / "out", Existing::refuse); }  // has a name of its own, and takes nothing with it
  staged.commit();
  EXPECT_EQ(read_file(root / "out" / "weights"), "new");
}

TEST_F(StagedDirectoryTest, ACrashBetweenTheTwoRenamesLosesNothing) {
  fs::path side = root / fmt::format("out.tmp-{}", dead_process());
  write_text(side / "replaced" / "weights", "old");
  write_text(side / "staged" / "weights", "new");
  recover_directory(root);
  EXPECT_EQ(names_in(root), Names{"out"});
  EXPECT_EQ(read_file(root / "out" / "weights"), "old");
}

TEST_F(StagedDirectoryTest, ACrashAfterTheSwapKeepsTheNewOne) {
  for (std::string_view old_one : {"replaced", "staged", "removed"}) {
    write_text(root / "out" / "weights", "new");
    write_text(root / fmt::format("out.tmp-{}", dead_process()) / old_one / "weights", "old");
    recover_directory(root);
    EXPECT_EQ(names_in(root), Names{"out"});
    EXPECT_EQ(read_file(root / "out" / "weights"), "new");
  }
}

TEST_F(StagedDirectoryTest, KilledAtAnyMomentOneVersionIsWhole) {
  auto save = [&](int version, Replacing replacing) {
    StagedDirectory staged(root / "out", Existing::replace);
    write_text(staged.path() / "first", std::to_string(version));
    write_text(staged.path() / "second", std::to_string(version));
    staged.commit(replacing);
  };
  save(0, Replacing::exchange);
  Random moment(5, "moment of death");
  for (uint64_t round = 0; round < 12; ++round) {
    pid_t child = ::fork();
    if (child == 0)
      for (int version = 1;; ++version) save(version, round % 2 == 0 ? Replacing::exchange : Replacing::two_renames);
    ::usleep(static_cast<useconds_t>(moment.below(round, 30'000)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    recover_directory(root);
    ASSERT_EQ(names_in(root), Names{"out"});
    ASSERT_EQ(names_in(root / "out"), (Names{"first", "second"}));
    ASSERT_EQ(read_file(root / "out" / "first"), read_file(root / "out" / "second"));
  }
}

TEST_F(StagedDirectoryTest, WhatIsNotOursStays) {
  pid_t dead = dead_process();
  write_text(root / fmt::format("thesis.tmp-{}", dead) / "chapter", "mine");
  write_text(root / "thesis.tmp-old" / "staged", "mine");
  write_text(root / ".tmp-5" / "staged", "mine");
  write_text(root / fmt::format("config.toml.tmp-{}", dead), "mine");
  Names before = names_in(root);
  recover_directory(root);
  EXPECT_EQ(names_in(root), before);
  recover_directory(root / "nowhere");
}

TEST_F(StagedDirectoryTest, RemovesDirectoriesWhole) {
  write_text(root / "out" / "deep" / "weights", "x");
  remove_directory(root / "out");
  EXPECT_EQ(names_in(root), Names{});
  EXPECT_IN("cannot remove", message_of<RunError>([&] { remove_directory(root / "out"); }));
  EXPECT_EQ(names_in(root), Names{});
}

// Saves 1 MB of weights where there is room for less. 0 when the error was as it should be.
int save_without_room(const fs::path& root) {
  write_text(root / "out" / "weights", "old");
  std::string said = message_of<RunError>([&] {
    StagedDirectory staged(root / "out", Existing::replace);
    WeightsWriter writer(staged.path(), plan_weights({{"w", FileDType::u8, {1'000'000}}}));
    staged.commit();
  });
  fmt::print(stderr, "{}\n", said);
  if (said.find("model.safetensors") == std::string::npos || said.find("hint: the ") == std::string::npos) return 1;
  if (names_in(root) != Names{"out"}) return 2;
  if (read_file(root / "out" / "weights") != "old") return 3;
  return 0;
}

TEST_F(StagedDirectoryTest, AFileSizeLimitLeavesTheOldOneWhole) {
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              rlimit limit{500'000, 500'000};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return save_without_room(root);
            }),
            0);
}

TEST_F(StagedDirectoryTest, AFullDiskLeavesTheOldOneWhole) {
  constexpr int kCannotMount = 50;
  int code = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", root.c_str(), "tmpfs", 0, "size=500k") != 0)
      return kCannotMount;
    if (int wrong = save_without_room(root)) return wrong;
    // The same while writing, as on file systems that cannot reserve.
    std::vector<std::byte> block(100'000);
    OutputFile file(root / "growing", 0, Creation::fresh);
    std::string said = message_of<RunError>([&] {
      for (int64_t at = 0; at < 10; ++at) file.write_at(at * 100'000, block);
    });
    return said.find("the disk is full") == std::string::npos ? 4 : 0;
  });
  if (code == kCannotMount) GTEST_SKIP() << "no permission to mount a small disk; the file-size limit stands in for it";
  EXPECT_EQ(code, 0);
}

TEST_F(StagedDirectoryTest, APlaceWithoutPermissionIsARunError) {
  fs::create_directory(root / "locked");
  ::chmod(root.c_str(), 0755);
  ::chmod((root / "locked").c_str(), 0555);
  EXPECT_EQ(in_child([&] {
              constexpr uid_t kNobody = 65534;
              if (::getuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) return 1;
              std::string said =
                  message_of<RunError>([&] { StagedDirectory s(root / "locked" / "out", Existing::refuse); });
              if (said.find("Permission denied") == std::string::npos) return 2;
              if (said.find("check that you may write there") == std::string::npos) return 3;
              said = message_of<RunError>([&] { StagedDirectory s(root / "locked" / "x" / "out", Existing::refuse); });
              return said.find("Permission denied") == std::string::npos ? 4 : 0;
            }),
            0);
  EXPECT_EQ(names_in(root / "locked"), Names{});
}

}  // namespace
}  // namespace sextant
