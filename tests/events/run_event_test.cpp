// Events as lines: what is written is read, torn and foreign lines are left out, and lines of several processes do not
// mix.
#include "events/run_event.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class RunEvents : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(directory_); }
  void TearDown() override { fs::remove_all(directory_); }
  fs::path directory_ = fs::temp_directory_path() / ("sextant_events_" + std::to_string(::getpid()));
};

TEST_F(RunEvents, EveryKindIsReadAsWritten) {
  for (const EventKindInfo& info : event_kinds()) {
    RunEvent event{.kind = info.kind, .time = "2026-11-17T18:03:54.123Z", .text = "a \"quoted\" line\nwith an end"};
    if (info.kind != EventKind::note) event.step = 7;
    event.details = {{"rank", 3},        {"share", 0.5},
                     {"whole", true},    {"names", std::vector<std::string>{"a", "b"}},
                     {"host", "node-7"}, {"seconds", EventJson{R"({"waiting":1.5})"}}};
    std::string line = event_line(event);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(parse_event(line), event) << line;
    EXPECT_EQ(event_kind_named(info.name), info.kind);
  }
}

TEST_F(RunEvents, TimesAreUtcAndSortAsText) {
  std::string now = utc_now();
  EXPECT_TRUE(std::regex_match(now, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"))) << now;
  EXPECT_LE(now, utc_now());
}

TEST_F(RunEvents, ATornLineIsEndedAndLeftOut) {
  append_event(directory_, {.kind = EventKind::start, .step = 1, .text = "first"});
  std::ofstream(directory_ / kEventsFile, std::ios::app) << R"({"time":"2026-11-17T18:0)";
  append_event(directory_, {.kind = EventKind::finish, .step = 9, .text = "last"});
  std::vector<RunEvent> events = read_events(directory_);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].text, "first");
  EXPECT_EQ(events[1].kind, EventKind::finish);
}

TEST_F(RunEvents, ALinkIsNotWrittenThrough) {
  std::ofstream(directory_ / "other") << "kept\n";
  fs::create_symlink(directory_ / "other", directory_ / kEventsFile);
  EXPECT_THROW(append_event(directory_, {.kind = EventKind::note, .text = "of the run"}), RunError);
  EXPECT_EQ(read_file(directory_ / "other"), "kept\n");
}

TEST_F(RunEvents, LinesOfSeveralProcessesDoNotMix) {
  constexpr int kProcesses = 4, kEach = 200;
  for (int p = 0; p < kProcesses; ++p)
    if (::fork() == 0) {
      for (int i = 0; i < kEach; ++i)
        append_event(directory_, {.text = std::string(300, static_cast<char>('a' + p)), .details = {{"i", i}}});
      ::_exit(0);
    }
  for (int p = 0; p < kProcesses; ++p) ::wait(nullptr);
  std::set<std::pair<std::string, int64_t>> seen;
  for (const RunEvent& event : read_events(directory_)) seen.emplace(event.text, event.details.integer("i").value());
  EXPECT_EQ(seen.size(), static_cast<size_t>(kProcesses * kEach));
}

TEST_F(RunEvents, WhatIsNoEventIsLeftOut) {
  for (const char* line :
       {"", "{}", "[]", "1", R"({"time":"","event":"note","text":"x"})", R"({"time":"t","event":"unheard","text":"x"})",
        R"({"time":"t","event":"note"})", R"({"time":"t","event":"note","text":"x","step":"1"})"})
    EXPECT_FALSE(parse_event(line)) << line;
}

TEST(EventsPage, ListsEveryKind) {
  std::string page = read_file(fs::path(checkout::kSources) / "docs/events.md");
  for (const EventKindInfo& info : event_kinds())
    EXPECT_NE(page.find("| `" + std::string(info.name) + "` | " + std::string(info.when) + " |"), std::string::npos)
        << info.name;
}

}  // namespace
}  // namespace sextant
