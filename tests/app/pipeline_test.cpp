// explain's pictures of the schedule, and the scripts of launch.
#include <gtest/gtest.h>

#include "base/files.h"
#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

const std::string kPipeline =
    config_path("tiny-llama.toml") + " model.layers=4 batch.microbatch=1 mesh.pp=2 pipeline.chunks=2 ";

TEST(Explain, DrawsTheScheduleByTheStagesOwnCosts) {
  ScratchPlace place("timeline");
  Outcome outcome = run_command(fmt::format("explain {} pipeline.schedule=interleaved --timeline {} --schedule-csv {}",
                                            kPipeline, place / "t.svg", place / "s.csv"));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::string svg = read_file(place / "t.svg"), csv = read_file(place / "s.csv");
  expect_words(svg, {"<svg", "interleaved: 2 ranks, 8 microbatches, 2 chunks a rank", "MFLOP of a rank",
                     "F 1 7 on rank 1", "B 0 0 on rank 0"});
  // The last stage has the head and the loss, whose forward and backward are in its backward: its boxes are not the
  // others'.
  auto length = [&](const std::string& box) {
    size_t at = svg.find("<title>" + box) + box.size() + 7, to = svg.find(" to ", at);
    return std::stod(svg.substr(to + 4)) - std::stod(svg.substr(at));
  };
  EXPECT_NEAR(length("F 0 0 on rank 0: "), length("F 0 1 on rank 0: "), 1e-6);
  EXPECT_GT(length("B 1 7 on rank 1: "), 1.2 * length("B 0 7 on rank 1: "));
  // The schedule that was written can be run, and is drawn the same.
  Outcome again = run_command(fmt::format("explain {} pipeline.schedule=csv pipeline.file={} --schedule-csv {}",
                                          kPipeline, place / "s.csv", place / "s2.csv"));
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(read_file(place / "s2.csv"), csv);
  EXPECT_NE(run_command(fmt::format("explain {} --timeline {}", kPipeline, place / "no/t.svg")).code, 0);
}

// Pairs are drawn above one another; DualPipe's ranks are drawn all, and run as two copies of half as many positions.
TEST(Explain, DrawsPairsAndBothCopies) {
  ScratchPlace place("pairs");
  Outcome drawn = run_command(fmt::format("explain {} pipeline.schedule=dualpipev --timeline {} --schedule-csv {}",
                                          kPipeline, place / "v.svg", place / "v.csv"));
  ASSERT_EQ(drawn.code, 0) << drawn.output;
  expect_words(read_file(place / "v.svg"), {"dualpipev: 2 ranks, 8 microbatches, 2 chunks a rank"});
  expect_words(read_file(place / "v.csv"), {"placement,v", "+B0.0+W0.0"});
  Outcome copies = run_command(fmt::format("explain {} pipeline.schedule=dualpipe --timeline {} --schedule-csv {}",
                                           kPipeline, place / "d.svg", place / "d.csv"));
  ASSERT_EQ(copies.code, 0) << copies.output;
  expect_words(read_file(place / "d.svg"), {"dualpipe: 2 ranks, 8 microbatches", "F 1 4 on rank 0", "F 0 0 on rank 0"});
  expect_words(read_file(place / "d.csv"), {"placement,both-ways"});
  Outcome again = run_command(fmt::format("explain {} pipeline.schedule=csv pipeline.file={} --schedule-csv {}",
                                          kPipeline, place / "d.csv", place / "d2.csv"));
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(read_file(place / "d2.csv"), read_file(place / "d.csv"));
  Outcome planned = run_command(fmt::format("plan {} pipeline.schedule=dualpipe", kPipeline));
  EXPECT_EQ(planned.code, 0) << planned.output;
  expect_words(planned.output, {"pp=1 pp_copy=2", "8 microbatches"});
  Outcome odd = run_command(fmt::format("plan {} pipeline.schedule=dualpipe mesh.pp=3", kPipeline));
  EXPECT_NE(odd.code, 0);
  expect_words(odd.output, {"an even number of ranks", "dualpipev takes any number of ranks"});
  Outcome alone = run_command(fmt::format("plan {} pipeline.schedule=dualpipe mesh.pp=1", kPipeline));
  EXPECT_NE(alone.code, 0);
  expect_words(alone.output, {"an even number of ranks"});
  Outcome few = run_command(fmt::format("explain {} pipeline.schedule=dualpipev batch.sequences=3", kPipeline));
  EXPECT_NE(few.code, 0);
  expect_words(few.output, {"at least twice as many microbatches as ranks"});
}

TEST(Launch, PrintsWhatStartsTheRun) {
  std::string config = config_path("tiny-llama.toml");
  Outcome slurm =
      run_command(fmt::format("launch --slurm {} mesh.dp=4 mesh.tp=4 model.heads=4 model.kv_heads=4 batch.sequences=16 "
                              "--ranks-per-node 8 --time 01:30:00 --partition big --container image.sqsh",
                              config));
  EXPECT_EQ(slurm.code, 0) << slurm.output;
  expect_words(slurm.output,
               {"#SBATCH --nodes=2", "#SBATCH --ntasks=16", "--time=0-01:30:00", "--partition=big", "srun", "train",
                "mesh.dp=4", "--container-image=image.sqsh", "--job-name=sextant-tiny-llama"});
  Outcome mpi = run_command(
      fmt::format("launch --mpi {} mesh.pp=2 batch.microbatch=1 --hosts hosts.txt --container image.sif", config));
  EXPECT_EQ(mpi.code, 0) << mpi.output;
  expect_words(mpi.output, {"mpirun", "-n 2", "--hostfile hosts.txt", "apptainer", "mesh.pp=2"});
  Outcome srun = run_command(fmt::format("launch --mpi --without-ssh {} mesh.pp=2 batch.microbatch=1", config));
  EXPECT_EQ(srun.code, 0) << srun.output;
  expect_words(srun.output, {"srun", "--ntasks=2"});
  Outcome kubernetes = run_command(fmt::format(
      "launch --kubernetes {} mesh.dp=2 batch.microbatch=1 --container registry/image:1 --without-ssh "
      "--namespace training --volume runs:/runs --memory 8G --node-selector gpu=h100 --node-selector zone=a",
      config));
  EXPECT_EQ(kubernetes.code, 0) << kubernetes.output;
  expect_words(kubernetes.output, {"kind: MPIJob", "registry/image:1", "kubectl exec", "gpu: \"h100\"", "zone: \"a\""});
}

// Every axis multiplies the world, and a run's name becomes one that every launcher takes.
TEST(Launch, CountsEveryAxisAndNamesTheJob) {
  Outcome outcome = run_command(
      fmt::format("launch --slurm {} mesh.dp=2 mesh.cp=2 mesh.tp=2 mesh.pp=2 batch.microbatch=1 name='My_Run 7--'",
                  config_path("tiny-llama.toml")));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  expect_words(outcome.output, {"#SBATCH --ntasks=16\n", "#SBATCH --job-name=sextant-my-run-7\n"});
}

TEST(Launch, RefusesPolitely) {
  std::string config = config_path("tiny-llama.toml");
  auto expect_refusal = [](const std::string& arguments, std::initializer_list<std::string> words) {
    Outcome outcome = run_command("launch " + arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    expect_words(outcome.output, words);
  };
  expect_refusal(config, {"--slurm, --mpi and --kubernetes"});
  expect_refusal("--slurm --mpi " + config, {"several launchers are chosen"});
  expect_refusal("--kubernetes " + config, {"container", "--container IMAGE"});
  expect_refusal("--mpi --partition big " + config, {"partition", "Slurm"});
  expect_refusal("--slurm --time soon " + config, {"time"});
  expect_refusal("--slurm " + config + " device=cuda", {"device = \"cuda\"", "--gpus-per-rank 1"});
  expect_refusal("--kubernetes --without-ssh --container image " + config, {"--namespace NAME"});
  expect_refusal("--slurm nowhere.toml", {"nowhere.toml"});
  expect_refusal("--slurm --ranks-per-node 3 " + config + " mesh.dp=8 batch.microbatch=1",
                 {"ranks per node", "3 does not divide"});
}

}  // namespace
}  // namespace sextant
