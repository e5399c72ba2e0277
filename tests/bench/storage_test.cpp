// Costs of a file system for training: everything is measured, no file is left, and the time lost to saves is counted
// correctly.
#include "bench/storage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "comm/run_ranks.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class StorageTest : public testing::Test {
 protected:
  StorageTest() : place_(fs::temp_directory_path() / fmt::format("sextant-storage-test-{}", ::getpid())) {
    fs::create_directories(place_);
  }
  ~StorageTest() override { fs::remove_all(place_); }
  StorageRequest request() const {
    return {.directory = place_, .checkpoint_bytes = 40 << 20, .token_bytes = 4 << 20, .small_files = 20, .repeats = 2};
  }
  fs::path place_;
};

// BLOOM: 40 s every 3 hours for 90 days are 720 saves, 8.0 hours, 0.370 %.
TEST(SaveLoss, IsThatOfAPublishedRun) {
  SaveLoss loss = save_loss(40, 3 * 3600);
  EXPECT_NEAR(loss.saves_per_day * 90, 720, 1e-9);
  EXPECT_NEAR(loss.minutes_per_day * 90 / 60, 8.0, 1e-9);
  EXPECT_NEAR(loss.share, 0.00370, 0.00001);
}

TEST_F(StorageTest, AllIsMeasuredAndNothingIsLeft) {
  BenchReport report;
  ThreadHub hub(2, std::chrono::seconds(30));
  for (const RankEnd& end : run_ranks(hub, 2, [&](Transport& transport) {
         CommWorld world(&transport);
         BenchReport own = bench_storage(world, request(), {});
         if (transport.rank() == 0) report = own;
       }))
    EXPECT_EQ(end.error, "");
  ASSERT_EQ(report.results.size(), 5u);
  std::vector<std::string> names{"checkpoint write", "checkpoint read", "tokens at random", "small file made",
                                 "small file opened"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(report.results[i].name, names[i]);
    EXPECT_GT(report.results[i].bytes_per_s(), 0);
    EXPECT_EQ(report.results[i].error, 0);
  }
  EXPECT_GE(report.results[0].bytes, 40 << 20);
  EXPECT_EQ(report.results[0].samples.size(), 2u);
  EXPECT_EQ(report.results[4].samples.size(), 20u);
  EXPECT_NE(report.findings.at(0).find("every 30 minutes costs"), std::string::npos) << report.findings.at(0);
  EXPECT_TRUE(fs::is_empty(place_));
}

TEST_F(StorageTest, StoppedItHasWhatItHas) {
  CommWorld world(nullptr);
  BenchReport report = bench_storage(world, request(), {.stop = [] { return true; }, .say = [](const std::string&) {}});
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.results.size(), 2u);
  EXPECT_EQ(report.results[0].samples.size(), 1u);
  EXPECT_TRUE(fs::is_empty(place_));
}

TEST_F(StorageTest, CachedBytesCanBeDroppedAndAreCounted) {
  fs::path file = place_ / "file";
  std::ofstream(file) << std::string(1 << 20, 'x');
  double held = drop_cached(file);
  EXPECT_GE(held, 0);
  EXPECT_LE(held, 1);
  EXPECT_THROW(drop_cached(place_ / "none"), RunError);
}

TEST_F(StorageTest, ADirectoryThatIsNotThereIsAnErrorOfTheRun) {
  CommWorld world(nullptr);
  StorageRequest bad = request();
  bad.directory = "/proc/nowhere";
  EXPECT_ANY_THROW(bench_storage(world, bad, {}));
}

}  // namespace
}  // namespace sextant
