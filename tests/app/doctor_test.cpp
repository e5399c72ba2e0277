// The program examines this machine: a planted fault is what changes, its exit code says so, and under mpirun the odd
// rank out is named. The two benchmarks of ranks run as threads and as processes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "checkout.h"
#include "processes.h"

namespace sextant {
namespace {

using nlohmann::json;

// Findings that are not ok, as "group/name status"; of the JSON in a command's output.
std::set<std::string> complaints_in(const std::string& output) {
  std::set<std::string> complaints;
  json report = json::parse(output.substr(output.find('{')), nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << output;
  for (const json& f : report["findings"])
    if (f["status"] != "ok")
      complaints.insert(f["group"].get<std::string>() + "/" + f["name"].get<std::string>() + " " +
                        f["status"].get<std::string>());
  return complaints;
}

TEST(Doctor, APlantedFaultIsWhatChanges) {
  ScratchPlace place("doctor");
  Outcome before = run_command("doctor --json " + place.path().string(), "ulimit -n 1000;");
  Outcome after = run_command("doctor --json " + place.path().string(), "ulimit -n 100;");
  EXPECT_EQ(after.code, 1) << after.output;
  std::set<std::string> expected = complaints_in(before.output);
  EXPECT_TRUE(expected.erase("limits/open files warning")) << before.output;
  expected.insert("limits/open files failure");
  EXPECT_EQ(complaints_in(after.output), expected);
}

TEST(Doctor, SaysItInWords) {
  Outcome outcome = run_command("doctor .", "ulimit -n 100;");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("FAILURE  open files"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("not fit to train: "), std::string::npos) << outcome.output;
  Outcome none = run_command("doctor /nowhere/at/all");
  EXPECT_EQ(none.code, 1) << none.output;
  EXPECT_NE(none.output.find("make the directory"), std::string::npos) << none.output;
  EXPECT_EQ(run_command("doctor --burn minus").code, 2);
}

TEST(Doctor, BurnsAndFindsNothing) {
  Outcome outcome = run_command("doctor --json --device cpu --burn 0.2");
  EXPECT_NE(outcome.output.find("none in "), std::string::npos) << outcome.output;
}

TEST(Doctor, NamesTheOddRankUnderMpi) {
  if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  std::string odd = fmt::format(" : -n 1 sh -c 'ulimit -n 700; exec {} doctor --json'", checkout::kBinary);
  Outcome outcome = run_command("doctor --json" + odd, "ulimit -n 900; " + under_mpirun(3));
  std::string text = outcome.output.substr(0, outcome.output.rfind('}') + 1);
  std::set<std::string> complaints = complaints_in(text);
  EXPECT_TRUE(complaints.contains("ranks/same open files warning")) << outcome.output;
  EXPECT_NE(outcome.output.find("700 where 3 of 4 ranks have 900"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("\"where\": \"rank 3 ("), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("of GEMMs, attention and collectives on 4 ranks"), std::string::npos) << outcome.output;
}

TEST(BenchRanks, CommIsRightAsThreadsAndProcesses) {
  std::string options = "bench comm --min 1K --max 4K --calls 3";
  Outcome threads = run_command(options + " --ranks 3");
  EXPECT_EQ(threads.code, 0) << threads.output;
  EXPECT_NE(threads.output.find("all ranks: 3 ranks"), std::string::npos) << threads.output;
  EXPECT_EQ(run_command(options + " --op nothing").code, 2);
  Outcome misfit = run_command(options + " --config " + config_path("tiny-llama.toml"));
  EXPECT_EQ(misfit.code, 2) << misfit.output;  // its mesh has one rank
  if (!mpirun_works()) GTEST_SKIP() << "this build has no MPI, or there is no mpirun";
  Outcome processes = run_command(
      options + " --config " + config_path("tiny-llama.toml") + " --set mesh.tp=2 --json 2>/dev/null", under_mpirun(2));
  EXPECT_EQ(processes.code, 0) << processes.output;
  json report = json::parse(processes.output.substr(processes.output.find('{')), nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << processes.output;
  EXPECT_EQ(report["results"][0]["name"], "all_reduce in place over tp");
}

TEST(BenchRanks, StorageLeavesNothingBehind) {
  ScratchPlace place("storage");
  Outcome outcome = run_command("bench storage --gb 0.02 --ranks 2 " + place.path().string());
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("checkpoint read"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("minutes a day"), std::string::npos) << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));
  EXPECT_EQ(run_command("bench storage /nowhere/at/all").code, 2);
}

}  // namespace
}  // namespace sextant
