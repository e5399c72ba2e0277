// The command that events are handed to: it gets every line in order, is killed when it takes too long, and holds
// nothing up.
#include "events/event_hook.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class EventHooks : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(place_); }
  void TearDown() override { fs::remove_all(place_); }
  std::string log() const { return fs::exists(log_) ? read_file(log_) : ""; }
  fs::path place_ = fs::temp_directory_path() / ("sextant_hook_" + std::to_string(::getpid()));
  fs::path log_ = place_ / "on_event.log", got_ = place_ / "got";
};

TEST_F(EventHooks, TheCommandGetsEveryLineInOrder) {
  {
    EventHook hook("cat >> " + got_.string() + "; echo seen", log_);
    for (int i = 0; i < 5; ++i) hook.post("line " + std::to_string(i));
  }
  EXPECT_EQ(read_file(got_), "line 0\nline 1\nline 2\nline 3\nline 4\n");
  EXPECT_EQ(log(), "seen\nseen\nseen\nseen\nseen\n");
}

TEST_F(EventHooks, WhatTakesTooLongIsKilledWithWhatItStarted) {
  auto start = std::chrono::steady_clock::now();
  {
    EventHook hook("sleep 60 & sleep 60", log_, {.each = 1s});
    hook.post("a");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 900ms) << "post waited";
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_NE(log().find("killed after 1 s"), std::string::npos) << log();
}

TEST_F(EventHooks, FailuresAndEventsLeftOutAreNoted) {
  {
    EventHook hook("exit 3", log_);
    hook.post("a");
  }
  EXPECT_NE(log().find("ended with exit code 3"), std::string::npos) << log();
  {
    EventHook hook("sleep 0.3", log_, {.each = 1s, .waiting = 2});
    for (int i = 0; i < 10; ++i) hook.post("a");
  }
  EXPECT_NE(log().find("an event was left out"), std::string::npos) << log();
}

TEST_F(EventHooks, WithoutACommandNothingHappens) {
  { EventHook("", log_).post("a"); }
  EXPECT_FALSE(fs::exists(log_));
}

}  // namespace
}  // namespace sextant
