// Hostfiles, suspects, the mesh for fewer ranks, and which rank is to blame.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "config/load.h"
#include "supervise/culprit.h"
#include "supervise/host_list.h"
#include "supervise/smaller_mesh.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

TEST(Hosts, AreReadAsOpenMpiWritesThem) {
  auto hosts = parse_hosts("# a comment\n\na slots=2\n b.example\tslots=16 # spare\r\nc\n", "hosts");
  EXPECT_EQ(hosts, (std::vector<HostSlots>{{"a", 2}, {"b.example", 16}, {"c", 1}}));
  EXPECT_EQ(slots_of(hosts), 19);
  EXPECT_EQ(first_hosts(hosts, 3), (std::vector<HostSlots>{{"a", 2}, {"b.example", 16}}));
  EXPECT_EQ(parse_hosts(hosts_text(hosts), "hosts"), hosts);
  for (const char* bad : {"a slots=0", "a slots=", "a slots=x", "a slot=2", "a b", "--x", "a\na", "a,b", "x=1"})
    EXPECT_THROW(parse_hosts(bad, "hosts"), UserError) << bad;
}

TEST(Hosts, SuspectsAreLeftOutUntilTheirLineGoes) {
  fs::path out = fs::temp_directory_path() / fmt::format("sextant-hosts-{}", ::getpid());
  fs::create_directories(out);
  write_file_atomically(out / "hosts", "a slots=2\nb slots=2\nc slots=2\n");
  HostPool pool(out / "hosts", out);
  EXPECT_EQ(slots_of(pool.available()), 6);
  pool.set_aside("b", "exit code 7 (rank lost)");
  pool.set_aside("b", "again");
  EXPECT_EQ(pool.available(), (std::vector<HostSlots>{{"a", 2}, {"c", 2}}));
  write_file_atomically(pool.suspects_file(), "# none\n");
  EXPECT_EQ(slots_of(pool.available()), 6);
  fs::remove_all(out);
}

RunConfig mesh_config(std::vector<std::string> settings) {
  settings.insert(settings.begin(), {"data.tokenizer_vocab=512", "model.vocab=512"});
  return load_config(fmt::format("{}/configs/tiny-llama.toml", checkout::kSources), settings);
}

TEST(SmallerMesh, ShrinksTheDataAxisAndKeepsTheBatch) {
  RunConfig run = mesh_config({"mesh.dp=4", "mesh.tp=2", "batch.sequences=8", "batch.microbatch=1"});
  EXPECT_EQ(mesh_for(run, 8)->setting, "");
  EXPECT_EQ(mesh_for(run, 100)->ranks, 8);
  for (int64_t room : {7, 5, 4}) EXPECT_EQ(mesh_for(run, room)->setting, "mesh.dp=2") << room;
  EXPECT_NE(mesh_for(run, 4)->text.find("4 microbatches"), std::string::npos) << mesh_for(run, 4)->text;
  EXPECT_EQ(mesh_for(run, 3)->ranks, 2);
  EXPECT_FALSE(mesh_for(run, 1));  // tensor parallelism stays
}

// As many ranks as the batch can be divided among, and any number where it need not divide.
TEST(SmallerMesh, NeedNotBeADivisor) {
  std::vector<std::string> settings{"mesh.dp=4", "batch.sequences=12", "batch.microbatch=1"};
  EXPECT_EQ(mesh_for(mesh_config(settings), 3)->setting, "mesh.dp=3");
  settings[1] = "batch.sequences=8";
  EXPECT_EQ(mesh_for(mesh_config(settings), 3)->setting, "mesh.dp=2");
  settings.push_back("train.reproducible=mesh");
  EXPECT_EQ(mesh_for(mesh_config(settings), 3)->setting, "mesh.dp=3");
  EXPECT_NE(mesh_for(mesh_config(settings), 3)->text.find("3 microbatches"), std::string::npos);
}

TEST(SmallerMesh, ObeysTheRulesOfTheConfig) {
  RunConfig run = mesh_config({"mesh.dp=4", "mesh.zero=1", "mesh.zero_ranks=2", "batch.microbatch=1"});
  EXPECT_EQ(mesh_for(run, 3)->setting, "mesh.dp=2");
  std::optional<MeshChoice> one = mesh_for(run, 1);
  EXPECT_FALSE(one) << one->text;  // ZeRO over two ranks needs two
}

LastBeat beat(int rank, std::string state, int waiting_for = -1) {
  return {.rank = rank,
          .host = fmt::format("host-{}", rank),
          .time = {},
          .state = std::move(state),
          .reason = {},
          .snapshot = {.step = 3, .action = {}, .place = {}, .beside = {}, .waiting_for = waiting_for}};
}

TEST(Culprit, IsTheRankThatTheOthersWaitedFor) {
  EXPECT_FALSE(culprit_of({}));
  EXPECT_FALSE(culprit_of({beat(0, "ended"), beat(1, "finished")}));
  EXPECT_EQ(culprit_of({beat(0, "ended", 1), beat(1, "failed")})->rank, 1);
  EXPECT_EQ(culprit_of({beat(0, "failed", 1), beat(1, "running", 2), beat(2, "running")})->rank, 2);
  EXPECT_EQ(culprit_of({beat(0, "running", 1), beat(1, "running")})->rank, 1);
  EXPECT_EQ(culprit_of({beat(0, "failed", 1), beat(1, "running", 0)})->rank, 0);  // they waited for each other
  EXPECT_EQ(culprit_of({beat(0, "running", 7)})->rank, 0);                        // one that left no file
}

}  // namespace
}  // namespace sextant
