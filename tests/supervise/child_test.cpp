// Processes that are started, ended with all they started, and recognised; heartbeats that go still.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "supervise/child_process.h"
#include "supervise/event_tail.h"
#include "supervise/heartbeat_watch.h"
#include "supervise/leftover.h"
#include "supervise/start_command.h"
#include "supervise/stopped_ranks.h"
#include "train/health/heartbeat.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Children : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(place_);
    log_ = ::open((place_ / "log").c_str(), O_CREAT | O_RDWR | O_APPEND, 0666);
  }
  void TearDown() override {
    ::close(log_);
    fs::remove_all(place_);
  }
  int ended(ChildProcess& child) {
    for (int i = 0; i < 200; ++i)
      if (auto status = child.wait(50ms)) return *status;
    return -1;
  }
  fs::path place_ = fs::temp_directory_path() / ("sextant_children_" + std::to_string(::getpid()));
  int log_ = -1;
};

TEST_F(Children, SayHowTheyEnded) {
  ChildProcess code({"sh", "-c", "echo spoken; exit 7"}, log_), signal({"sh", "-c", "kill -9 $$"}, log_),
      missing({"/no/such/program"}, log_);
  EXPECT_EQ(WEXITSTATUS(ended(code)), 7);
  EXPECT_EQ(WTERMSIG(ended(signal)), SIGKILL);
  EXPECT_EQ(WEXITSTATUS(ended(missing)), 127);
  EXPECT_EQ(read_file(place_ / "log"), "spoken\n");
}

// Also those that left their parent and its process group, and those that are stopped.
TEST_F(Children, AreKilledWithAllTheyStarted) {
  adopt_orphans();
  std::string pids = (place_ / "pids").string();
  ChildProcess child({"sh", "-c",
                      "sleep 100 & echo $! >> " + pids + "; (setsid sleep 101 & echo $! >> " + pids +
                          "); kill -STOP $(head -1 " + pids + "); echo ready; wait"},
                     log_);
  while (read_file(place_ / "log").empty()) std::this_thread::sleep_for(5ms);
  child.kill_all();
  std::ifstream file(pids);
  int count = 0;
  for (pid_t process = 0; file >> process; ++count) EXPECT_FALSE(start_ticks(process)) << process;
  EXPECT_EQ(count, 2);
  EXPECT_FALSE(start_ticks(child.id()));
}

// A process that others stop and let go on, in turns, is slow; one that nobody lets go on hangs.
TEST_F(Children, ThatStayStoppedAreSeen) {
  using Clock = StoppedRanks::Clock;
  ChildProcess child({"sh", "-c", "echo ready; while :; do :; done"}, log_);
  while (read_file(place_ / "log").empty()) std::this_thread::sleep_for(5ms);
  StoppedRanks stopped(fs::canonical(fmt::format("/proc/{}/exe", child.id())), 10s), others("/bin/none", 10s);
  Clock::time_point start = Clock::now();
  auto facts = [&] {
    for (const LivingProcess& process : living_descendants(::getpid()))
      if (process.id == child.id()) return process;
    return LivingProcess{};
  };
  auto stop = [&] {
    child.send(SIGSTOP);
    while (facts().state != 'T') std::this_thread::sleep_for(1ms);
  };
  EXPECT_FALSE(stopped.look(start));
  stop();
  EXPECT_FALSE(stopped.look(start + 1s));
  uint64_t used = facts().used;
  child.send(SIGCONT);
  while (facts().used == used) std::this_thread::sleep_for(1ms);
  stop();
  EXPECT_FALSE(stopped.look(start + 12s));
  EXPECT_FALSE(others.look(start + 12s));
  EXPECT_FALSE(stopped.look(start + 21s));
  EXPECT_EQ(stopped.look(start + 22s), child.id());
  EXPECT_FALSE(others.look(start + 40s));
}

// A heartbeat as a rank writes it, at this second of the test's own time.
void write_beat(const fs::path& out, int rank, const std::string& state, int at) {
  fs::create_directories(heartbeat_directory(out));
  fs::path file = heartbeat_directory(out) / fmt::format("rank-{}.json", rank);
  std::ofstream(file) << nlohmann::json{{"rank", rank}, {"host", "h"},       {"pid", 1},  {"state", state},
                                        {"step", 1},    {"action", ""},      {"op", ""},  {"beside", ""},
                                        {"reason", ""}, {"waiting_for", -1}, {"time", ""}};
  fs::last_write_time(file, fs::file_time_type(std::chrono::seconds(at)));
}

TEST_F(Children, HeartbeatsThatGoStillAreAHang) {
  using Clock = HeartbeatWatch::Clock;
  Clock::time_point start = Clock::now();
  HeartbeatWatch watch(place_, {.stale = 10s, .start = 20s, .leaving = 30s}, start);
  EXPECT_FALSE(watch.look(start + 19s));
  EXPECT_NE(watch.look(start + 21s)->find("no heartbeat within"), std::string::npos);
  write_beat(place_, 0, "finished", 22);
  write_beat(place_, 1, "running", 22);
  EXPECT_FALSE(watch.look(start + 22s));
  write_beat(place_, 1, "running", 31);
  EXPECT_FALSE(watch.look(start + 31s));
  EXPECT_FALSE(watch.look(start + 40s));  // rank 0 is still, but it has finished
  EXPECT_TRUE(watch.look(start + 41s));   // as long as the limit is too long
  EXPECT_NE(watch.look(start + 42s)->find("no heartbeat of rank-1 for 11 s"), std::string::npos);
  write_beat(place_, 1, "finished", 43);
  EXPECT_FALSE(watch.look(start + 43s));
  EXPECT_FALSE(watch.look(start + 72s));
  EXPECT_NE(watch.look(start + 74s)->find("processes are still there"), std::string::npos);
}

// A start may take long; a run that has begun may not be silent, even if nobody has ever seen its heartbeats.
TEST_F(Children, HeartbeatsThatWereRemovedBeforeTheyWereSeenAreMissed) {
  using Clock = HeartbeatWatch::Clock;
  Clock::time_point start = Clock::now();
  HeartbeatWatch watch(place_, {.stale = 10s, .start = 3600s, .leaving = 30s}, start);
  EXPECT_FALSE(watch.look(start + 100s));
  watch.expect(2, start + 100s);
  EXPECT_FALSE(watch.look(start + 109s));
  write_beat(place_, 0, "running", 109);  // it has written its file again; the other is stopped
  EXPECT_FALSE(watch.look(start + 109s));
  watch.expect(2, start + 109s);
  EXPECT_NE(watch.look(start + 111s)->find("no heartbeat of rank-1 for 11 s"), std::string::npos);
  write_beat(place_, 1, "running", 112);
  EXPECT_FALSE(watch.look(start + 112s));
}

TEST_F(Children, ALauncherIsLeftWhenAllRanksEndedByAFailure) {
  using Clock = HeartbeatWatch::Clock;
  Clock::time_point start = Clock::now();
  HeartbeatWatch watch(place_, {.stale = 10s, .start = 20s, .leaving = 30s, .failing = 3s}, start);
  auto is_left_at = [&](std::chrono::seconds time) {
    EXPECT_FALSE(watch.look(start + time));
    return watch.launcher_is_left(start + time);
  };
  EXPECT_FALSE(is_left_at(5s));  // no rank has come yet
  write_beat(place_, 0, "failed", 6);
  write_beat(place_, 1, "running", 6);
  EXPECT_FALSE(is_left_at(6s));
  EXPECT_FALSE(is_left_at(10s));  // rank 1 may still save
  write_beat(place_, 1, "ended", 11);
  EXPECT_FALSE(is_left_at(11s));
  EXPECT_FALSE(is_left_at(13s));
  EXPECT_TRUE(is_left_at(14s));
  write_beat(place_, 0, "finished", 15);
  write_beat(place_, 1, "finished", 15);
  EXPECT_FALSE(is_left_at(15s));
  EXPECT_FALSE(is_left_at(20s));  // nothing failed: the end may take its time
}

TEST(StartCommand, MpirunDoesNotWaitForRanksThatCannotEnd) {
  std::vector<std::string> words = start_command(
      {.starter = Starter::mpirun, .binary = "/bin/sextant", .ranks = 2, .hostfile = "h", .launcher_arguments = {"-x"}},
      {"train", "c.toml"});
  EXPECT_EQ(fmt::format("{}", fmt::join(words, " ")),
            "env NO_COLOR=1 OMPI_MCA_odls_base_sigkill_timeout=0 PRTE_MCA_odls_base_sigkill_timeout=0 mpirun -n 2 "
            "--hostfile h -x "
            "/bin/sextant train c.toml");
}

TEST_F(Children, EventsOfOthersAreSeenOnce) {
  append_event(place_, {.kind = EventKind::start, .step = 1, .text = "before"});
  EventTail tail(place_);
  EXPECT_TRUE(tail.take().empty());
  append_event(place_, {.kind = EventKind::resume, .step = 5, .text = "after"});
  std::ofstream(place_ / kEventsFile, std::ios::app) << "{\"time\":";
  std::vector<RunEvent> events = tail.take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step, 5);
  EXPECT_TRUE(tail.take().empty());
}

// A line is an event when its end is there, however often it was looked at before.
TEST_F(Children, EventsThatAreStillWrittenAreReadWhole) {
  append_event(place_, {.kind = EventKind::spike, .step = 7, .text = "whole"});
  const std::string line = read_file(place_ / kEventsFile);
  fs::remove(place_ / kEventsFile);
  EventTail tail(place_);
  for (size_t at = 0; at < line.size(); at += 20) {
    EXPECT_TRUE(tail.take().empty()) << at;
    std::ofstream(place_ / kEventsFile, std::ios::app) << line.substr(at, 20);
  }
  std::vector<RunEvent> events = tail.take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step, 7);
}

TEST_F(Children, ThatASupervisorLeftAreEnded) {
  ChildProcess child({"sh", "-c", "trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done"}, log_);
  while (read_file(place_ / "log").empty()) std::this_thread::sleep_for(5ms);
  note_child(place_, child.id());
  // As child of this test it stays a zombie until it is waited for, which is not running.
  std::vector<std::string> said;
  end_leftover(place_, 20s, [&](const std::string& text) { said.push_back(text); });
  EXPECT_EQ(said.size(), 1u);
  EXPECT_EQ(WEXITSTATUS(ended(child)), 5);
  EXPECT_FALSE(fs::exists(place_ / "supervisor.json"));
}

// The system gives the number of a process that ended to another one.
TEST_F(Children, AProcessWithTheNumberOfAChildIsLeftAlone) {
  ChildProcess other({"sh", "-c", "echo ready; while :; do sleep 0.01; done"}, log_);
  while (read_file(place_ / "log").empty()) std::this_thread::sleep_for(5ms);
  note_child(place_, other.id());
  nlohmann::json noted = nlohmann::json::parse(read_file(place_ / "supervisor.json"));
  noted["start"] = noted["start"].get<uint64_t>() + 1;
  std::ofstream(place_ / "supervisor.json") << noted.dump() << "\n";
  end_leftover(place_, 0s, [](const std::string& text) { ADD_FAILURE() << text; });
  EXPECT_FALSE(other.wait(100ms).has_value());
  EXPECT_FALSE(fs::exists(place_ / "supervisor.json"));
  other.kill_all();
}

}  // namespace
}  // namespace sextant
