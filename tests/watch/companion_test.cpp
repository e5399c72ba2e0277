// Outputs of a run while it trains: event files that follow it, values on a port of its own.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "raw_client.h"
#include "run_files.h"
#include "watch/live_tensorboard.h"
#include "watch/run_companion.h"
#include "watch/tensorboard.h"

namespace sextant {
namespace {

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& file : std::filesystem::directory_iterator(folder)) found.push_back(file.path());
  return found;
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

TEST(LiveTensorboards, GrowWithTheRunAndBeginAgainWithIt) {
  RunFiles files("board");
  files.write("r/events.jsonl",
              "{\"time\":\"2026-11-17T18:03:54.000Z\",\"event\":\"start\",\"step\":1,\"text\":\"begun\"}\n");
  files.write("r/metrics.jsonl", metrics_line(1, 5, ",\"own_s_by_rank\":[0.1,0.2]"));
  LiveTensorboard board(files / "r");
  EXPECT_TRUE(board.follow());
  EXPECT_FALSE(board.follow());
  ASSERT_EQ(files_in(files / "r/tensorboard").size(), 1u);
  std::filesystem::path first = files_in(files / "r/tensorboard")[0];
  std::string before = read_file(first);
  EXPECT_TRUE(before.find("own_s_by_rank") != before.npos && before.find("events/start") != before.npos);
  files.append("r/metrics.jsonl", metrics_line(2, 4) + "{\"step\":3");
  EXPECT_TRUE(board.follow());
  std::string after = read_file(first);
  EXPECT_TRUE(after.starts_with(before));
  EXPECT_EQ(after.substr(before.size()),
            tensorboard_record(tensorboard_event(*seconds_of_event_time("2026-11-17T18:03:54.000Z") + 1, 2,
                                                 {{"loss", 4}, {"tokens", 200}, {"step_s", 0.5}})));
  // As a resumed run writes it: another file with the steps that count, and all events again.
  files.write("r/new", metrics_line(1, 5));
  std::filesystem::rename(files / "r/new", files / "r/metrics.jsonl");
  EXPECT_TRUE(board.follow());
  ASSERT_EQ(files_in(files / "r/tensorboard").size(), 1u);
  EXPECT_NE(files_in(files / "r/tensorboard")[0], first);
  std::string again = read_file(files_in(files / "r/tensorboard")[0]);
  EXPECT_EQ(count_of(again, "loss"), 1u);
  EXPECT_EQ(count_of(again, "events/start"), 1u);
}

TEST(ServedAddresses, AreHostAndPort) {
  EXPECT_EQ(parse_served_address(":9400", "p").host, "127.0.0.1");
  EXPECT_EQ(parse_served_address(":9400", "p").port, 9400);
  EXPECT_EQ(parse_served_address("0.0.0.0:1", "p").host, "0.0.0.0");
  EXPECT_EQ(parse_served_address("[::1]:80", "p").host, "::1");
  for (const char* bad : {"", "9400", ":", ":x", ":70000", "host:", ":-1", ":94 00"})
    EXPECT_THROW(parse_served_address(bad, "p"), UserError) << bad;
}

TEST(RunCompanions, ServeTheLastValuesAlone) {
  RunFiles files("companion");
  files.write("r/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4.5));
  RunCompanion companion(files / "r", {.prometheus = ":0"}, [](const std::string& line) { ADD_FAILURE() << line; });
  ASSERT_GT(companion.port(), 0);
  auto ask = [&](const std::string& path, const std::string& host) {
    RawClient client(companion.port());
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path, host));
    return client.receive();
  };
  std::string values = ask("/metrics", "localhost");
  EXPECT_NE(values.find("\nsextant_loss{run=\"r\"} 4.5\n"), values.npos) << values;
  EXPECT_TRUE(ask("/", "localhost").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("/api/runs", "localhost").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask("/metrics", "evil.example").starts_with("HTTP/1.1 403 "));
}

}  // namespace
}  // namespace sextant
