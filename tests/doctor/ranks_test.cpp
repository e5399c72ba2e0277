// Four ranks compare notes: the odd one out is named, by majority.
#include "doctor/ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/run_ranks.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "planted_host.h"

namespace sextant {
namespace {

class FourRanks : public testing::Test {
 protected:
  FourRanks() {
    auto time = std::make_shared<PlantedTime>();
    for (int rank = 0; rank < 4; ++rank)
      hosts_.push_back(std::make_unique<PlantedHost>(fmt::format("node{}", rank), time));
  }

  // Findings that rank 0 reports in addition to those that each machine finds by itself.
  std::vector<Finding> findings() {
    std::vector<Finding> found;
    ThreadHub hub(4, std::chrono::seconds(20));
    std::vector<RankEnd> ends = run_ranks(hub, 4, [&](Transport& transport) {
      const Host& host = hosts_[static_cast<size_t>(transport.rank())]->host;
      std::vector<RankExamination> all = gather_examinations(transport, host, examine(host));
      std::vector<Finding> messages = check_messages(transport, host, all);
      if (transport.rank() > 0) return;
      found = merge_findings(all);
      for (const Finding& f : compare_facts(all)) found.push_back(f);
      for (const Finding& f : messages) found.push_back(f);
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.error, "");
    return found;
  }

  std::vector<Finding> complaints() {
    std::vector<Finding> complaints;
    for (Finding& f : findings())
      if (f.health != Health::ok) complaints.push_back(f);
    return complaints;
  }

  std::vector<std::unique_ptr<PlantedHost>> hosts_;
};

TEST_F(FourRanks, AlikeHaveNothingToReport) {
  std::vector<Finding> found = findings();
  for (const Finding& f : found) {
    EXPECT_EQ(f.health, Health::ok) << f.group << "/" << f.name << ": " << f.found;
    EXPECT_EQ(f.where, "") << f.name;
  }
  EXPECT_EQ(exit_code_of(found), ExitCode::finished);
}

TEST_F(FourRanks, ASkewedVersionIsNamedWithItsMachine) {
  hosts_[2]->versions["nccl"] = "2.27.1";
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "same nccl");
  EXPECT_EQ(found[0].where, "node2");
  EXPECT_EQ(found[0].found, "2.27.1 where 3 of 4 ranks have 2.26.2");
}

TEST_F(FourRanks, RankZeroCanBeTheOddOne) {
  hosts_[0]->gpus.driver = "550.54";
  hosts_[0]->clock_offset = 3;
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "same driver");
  EXPECT_EQ(found[0].where, "node0");
  EXPECT_EQ(found[1].name, "clocks");
  EXPECT_EQ(found[1].where, "node0");
}

TEST_F(FourRanks, WithoutMajorityAllAreNamed) {
  for (int rank : {0, 1}) hosts_[static_cast<size_t>(rank)]->gpus.driver = "550.54";
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, "");
  EXPECT_NE(found[0].found.find("550.54 on node0; node1"), std::string::npos) << found[0].found;
  EXPECT_NE(found[0].found.find("570.86 on node2; node3"), std::string::npos) << found[0].found;
}

TEST_F(FourRanks, AClockThatIsOffIsNamed) {
  hosts_[3]->clock_offset = -2;
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "clocks");
  EXPECT_EQ(found[0].health, Health::warning);
  EXPECT_EQ(found[0].where, "node3");
  EXPECT_NE(found[0].found.find("2.00"), std::string::npos) << found[0].found;
}

TEST_F(FourRanks, ASlowWayIsNamed) {
  hosts_[2]->answers_after_microseconds = 2000;
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "messages");
  EXPECT_EQ(found[0].health, Health::warning);
  EXPECT_EQ(found[0].where, "node2");
}

TEST_F(FourRanks, AFaultOnOneIsToldOnceWithItsPlace) {
  hosts_[1]->spaces["/runs"].free_bytes = 1000;
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, "node1");
  EXPECT_EQ(exit_code_of(found), ExitCode::unhealthy);
}

TEST_F(FourRanks, RanksOfOneMachineAreNamedByNumber) {
  for (auto& host : hosts_) host->host.name = "alone";
  hosts_[3]->limits[LimitKind::open_files] = {5000, 5000};
  std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "same open files");
  EXPECT_EQ(found[0].where, "rank 3 (alone)");
}

TEST(Report, SaysWhatToDoAndWhere) {
  std::vector<Finding> findings{{"disk", "/runs", Health::ok, "600 GiB free", {}},
                                {"disk", "/tmp", Health::failure, "full", "remove old runs", "node1"},
                                {"clock", "clock sync", Health::unknown, "unavailable", {}}};
  std::string text = findings_text(findings);
  EXPECT_NE(text.find("FAILURE  /tmp"), std::string::npos) << text;
  EXPECT_NE(text.find("full · on node1"), std::string::npos) << text;
  EXPECT_NE(text.find("→ remove old runs"), std::string::npos) << text;
  EXPECT_NE(text.find("not fit to train: 1 failure, 0 warnings; 1 thing could not be read"), std::string::npos) << text;
  auto json = nlohmann::json::parse(findings_json(findings));
  EXPECT_FALSE(json["fit"]);
  EXPECT_EQ(json["findings"][1]["status"], "failure");
  EXPECT_EQ(json["findings"][1]["where"], "node1");
}

}  // namespace
}  // namespace sextant
