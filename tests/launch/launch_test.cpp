// Launch texts as a shell and a YAML reader read them: scripts run with substitutes for srun and mpirun that print
// their arguments, so that quoting is tested by the arguments that arrive.
#include "launch/launch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/shell_quoted.h"
#include "launch/launchers.h"
#include "stand_ins.h"

namespace sextant {
namespace {

const char* const kAwkward[] = {"/data/my runs/it's \"here\"/$HOME.toml", "a`b`\\c;d&e|f>g",
                                "train.note=*? [x] {y} ~ #z", "é ü 漢"};

TEST(Quote, ShellReadsBackWhatWasQuoted) {
  StandIns stand_ins;
  for (const char* word : kAwkward)
    EXPECT_EQ(stand_ins.output_of("srun " + shell_quoted(word) + "\n"), std::string(word) + "\n");
  EXPECT_EQ(stand_ins.output_of("srun " + shell_quoted("") + "\n"), "\n");
  EXPECT_EQ(shell_quoted("configs/llama-8b.toml"), "configs/llama-8b.toml");
}

TEST(Slurm, CountsTasksNodesAndDevices) {
  LaunchRequest r = request(Launcher::slurm);
  r.time_limit = "90";
  r.slurm.partition = "gpu_long";
  std::string text = launch_text(r);
  for (const char* line : {"#!/bin/bash", "#SBATCH --job-name=llama-8b", "#SBATCH --nodes=2", "#SBATCH --ntasks=16",
                           "#SBATCH --ntasks-per-node=8", "#SBATCH --cpus-per-task=4", "#SBATCH --gpus-per-task=1",
                           "#SBATCH --time=0-01:30:00", "#SBATCH --partition=gpu_long", "#SBATCH --signal=USR1@300"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  ASSERT_NE(text.find("\nsrun"), std::string::npos) << text;
  std::string srun = text.substr(text.find("\nsrun"));  // which does not take sbatch's
  for (const char* word : {"--ntasks=16", "--ntasks-per-node=8", "--cpus-per-task=4", "--gpus-per-task=1"})
    EXPECT_NE(srun.find(word), std::string::npos) << word << "\n" << srun;
  r.gpus_per_rank = 0;
  EXPECT_EQ(launch_text(r).find("gpus"), std::string::npos);
  r.time_limit = "2";  // not sooner than three quarters of it
  EXPECT_TRUE(has_line(launch_text(r), "#SBATCH --signal=USR1@30"));
  for (auto [given, written] :
       {std::pair{"1-06:05", "1-06:05:00"}, {"30:00:00", "1-06:00:00"}, {"90:30", "0-01:30:30"}}) {
    r.time_limit = given;
    EXPECT_TRUE(has_line(launch_text(r), fmt::format("#SBATCH --time={}", written))) << given << "\n" << launch_text(r);
  }
}

// A rank that has one core trains at a fraction of its speed: without a number the ranks share the node.
TEST(Slurm, WithoutANumberRanksShareTheCoresOfTheNode) {
  StandIns stand_ins;
  LaunchRequest r = request(Launcher::slurm);
  r.cpus_per_rank = 0;
  r.preflight = true;
  std::string text = launch_text(r);
  EXPECT_EQ(text.find("#SBATCH --cpus-per-task"), std::string::npos) << text;
  EXPECT_TRUE(has_line(text, "#SBATCH --exclusive")) << text;
  for (auto [cores, of_a_rank] : {std::pair{"96(x2)", "12"}, {"72,36(x3)", "9"}, {"4", "1"}}) {
    std::string arguments = stand_ins.output_of(fmt::format("export SLURM_JOB_CPUS_PER_NODE='{}'\n{}", cores, text));
    EXPECT_TRUE(has_line(arguments, fmt::format("--cpus-per-task={}", of_a_rank))) << arguments;
    EXPECT_EQ(arguments.find("cpus-per-task=\n"), std::string::npos) << arguments;
  }
  r.cpus_per_rank = 3;
  EXPECT_FALSE(has_line(launch_text(r), "#SBATCH --exclusive"));
}

TEST(Slurm, TheMpiPluginIsChosen) {
  StandIns stand_ins;
  LaunchRequest r = request(Launcher::slurm);
  r.srun_mpi = "cray_shasta";
  EXPECT_TRUE(has_line(stand_ins.output_of(launch_text(r)), "--mpi=cray_shasta"));
}

TEST(Mpi, WithoutANumberRanksShareTheCoresOfTheMachine) {
  StandIns stand_ins;
  stand_ins.replace("lscpu",
                    "#!/bin/sh\nprintf '# CORE,SOCKET\\n'\n"
                    "for core in $(seq 0 31); do printf '%s,0\\n%s,0\\n' $core $core; done\n");
  LaunchRequest r = request(Launcher::mpi);
  r.cpus_per_rank = 0;
  EXPECT_TRUE(has_line(stand_ins.output_of(launch_text(r)), "ppr:8:node:PE=4"));
}

TEST(Kubernetes, WithoutANumberCoresAreNotLimited) {
  LaunchRequest r = request(Launcher::kubernetes);
  r.cpus_per_rank = 0;
  EXPECT_EQ(launch_text(r).find("cpu:"), std::string::npos);
  r.gpus_per_rank = 0;
  EXPECT_EQ(launch_text(r).find("limits:"), std::string::npos);
}

TEST(Slurm, AWorldSmallerThanANodeTakesOneNode) {
  LaunchRequest r = request(Launcher::slurm);
  r.world_size = 3;
  EXPECT_TRUE(has_line(launch_text(r), "#SBATCH --nodes=1"));
  EXPECT_TRUE(has_line(launch_text(r), "#SBATCH --ntasks-per-node=3"));
}

TEST(Slurm, EveryWordArrives) {
  StandIns stand_ins;
  LaunchRequest r = request(Launcher::slurm);
  r.binary = "/opt/my tools/sextant";
  r.config = kAwkward[0];
  r.overrides = {kAwkward[1], kAwkward[2], kAwkward[3]};
  std::string arguments = stand_ins.output_of(launch_text(r));
  std::string program = r.binary + "\ntrain\n";
  for (const char* word : kAwkward) program += std::string(word) + "\n";
  EXPECT_TRUE(arguments.ends_with(program)) << arguments;
  EXPECT_TRUE(has_line(arguments, "--ntasks=16"));
  EXPECT_TRUE(has_line(arguments, "--mpi=pmix"));
}

TEST(Slurm, ContainersOfBothRuntimes) {
  StandIns stand_ins;
  LaunchRequest r = request(Launcher::slurm);
  r.container = "/images/our image.sqsh";
  EXPECT_TRUE(has_line(stand_ins.output_of(launch_text(r)), "--container-image=/images/our image.sqsh"));
  r.container_runtime = ContainerRuntime::apptainer;
  std::string arguments = stand_ins.output_of(launch_text(r));
  EXPECT_EQ(arguments.find("--container-image"), std::string::npos);
  EXPECT_NE(arguments.find("apptainer\nexec\n--nv\n"), std::string::npos);
  EXPECT_NE(arguments.find("\n/images/our image.sqsh\nsextant\ntrain\n"), std::string::npos) << arguments;
}

TEST(Mpi, MpirunGetsRanksHostsAndProgram) {
  StandIns stand_ins;
  LaunchRequest r = request(Launcher::mpi);
  r.hostfile = "my hosts";
  r.time_limit = "1-0";
  r.overrides = {kAwkward[1]};
  EXPECT_EQ(stand_ins.output_of(launch_text(r)),
            "-n\n16\n--map-by\nppr:8:node:PE=4\n--bind-to\ncore\n--hostfile\nmy hosts\n"
            "sextant\ntrain\nconfigs/llama.toml\n" +
                std::string(kAwkward[1]) + "\n");
}

// With a stand-in that says which signals reach it. The script gets them as a terminal sends them: to all of its group.
std::string after_signals(const std::string& script, const std::string& signals, const std::string& binary = "mpirun") {
  StandIns stand_ins;
  stand_ins.replace(binary,
                    "#!/bin/bash\ntrap 'echo USR1; exit 5' USR1\ntrap 'echo TERM; exit 9' TERM INT HUP\ntouch ready\n"
                    "while :; do sleep 0.05; done\n");
  return stand_ins.output_of("set -m\ncat > inner <<'INNER'\n" + script + "INNER\nbash inner &\npid=$!\n" +
                             "until [ -e ready ]; do sleep 0.02; done\n" + signals + "\nwait $pid\necho code $?\n");
}

TEST(Mpi, TheFirstSignalIsARequestToSave) {
  std::string script = launch_text(request(Launcher::mpi));
  for (const char* signal : {"INT", "TERM", "HUP", "USR1"})
    EXPECT_EQ(after_signals(script, fmt::format("kill -{} -$pid", signal)), "USR1\ncode 5\n") << signal;
}

TEST(Mpi, TheTimeLimitIsARequestToSave) {
  LaunchRequest r = request(Launcher::mpi);
  r.time_limit = "0:4";  // three seconds, and one to save
  EXPECT_EQ(after_signals(launch_text(r), ""), "USR1\ncode 5\n");
}

TEST(Mpi, WithoutSshItIsSrun) {
  StandIns stand_ins;
  LaunchRequest r = request(Launcher::mpi);
  r.remote_start = RemoteStart::without_ssh;
  r.time_limit = "00:10:01";
  std::string text = launch_text(r), arguments = stand_ins.output_of(text);
  EXPECT_EQ(text.find("mpirun"), std::string::npos);
  EXPECT_EQ(text.find("#SBATCH"), std::string::npos);
  EXPECT_TRUE(has_line(arguments, "--mpi=pmix"));
  EXPECT_TRUE(has_line(arguments, "--ntasks=16"));
  EXPECT_TRUE(has_line(arguments, "--time=11"));
}

TEST(Kubernetes, MpiJobHasTheCountsAtTheirPlaces) {
  LaunchRequest r = request(Launcher::kubernetes);
  r.time_limit = "01:00:00";
  r.overrides = {"train.note=\"a\\b\""};
  std::string text = launch_text(r);
  for (const char* line :
       {"apiVersion: kubeflow.org/v2beta1", "kind: MPIJob", "  name: llama-8b", "  slotsPerWorker: 8",
        "    activeDeadlineSeconds: 3600", "    Launcher:", "      replicas: 1", "    Worker:", "      replicas: 2",
        "              image: \"registry/sextant:1\"", "                - \"16\"",
        "                - \"configs/llama.toml\"", "                - \"train.note=\\\"a\\\\b\\\"\"",
        "                  cpu: 32", "                  nvidia.com/gpu: 8"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST(Kubernetes, PodsHaveTimeToSave) {
  std::string text = launch_text(request(Launcher::kubernetes));
  size_t first = text.find("terminationGracePeriodSeconds: 600");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("terminationGracePeriodSeconds: 600", first + 1), std::string::npos) << text;
  // The launcher's script is one word of a command, in the form that YAML and JSON share.
  size_t begin = text.find("                - \"-c\"\n") + 25, quote = text.find('"', begin);
  std::string script;
  for (size_t at = quote + 1; text[at] != '"'; ++at) script += text[at] == '\\' ? text[++at] : text[at];
  EXPECT_EQ(after_signals("set -- mpirun\n" + script + "\n", "kill -TERM $pid"), "USR1\ncode 5\n");
}

// Depth grows by one level at a time, and only below a key without a value or a list's dash.
TEST(Kubernetes, IndentationIsThatOfYaml) {
  for (RemoteStart start : {RemoteStart::ssh, RemoteStart::without_ssh}) {
    LaunchRequest r = request(Launcher::kubernetes);
    r.remote_start = start;
    r.memory = "64G";
    r.kubernetes = {.name_space = "training",
                    .volume = "runs:/runs",
                    .node_selector = {"gpu=h100"},
                    .service_account = "trainer",
                    .pull_policy = PullPolicy::always};
    std::string before;
    size_t depth = 0;
    for (const std::string& line : lines_of(launch_text(r))) {
      size_t indent = line.find_first_not_of(' ');
      if (before.ends_with("|") && indent >= 4) continue;  // the agent's script
      EXPECT_EQ(indent % 2, 0u) << line;
      if (indent > depth) {
        EXPECT_EQ(indent, depth + 2) << line;
        EXPECT_TRUE(before.ends_with(":") || before.starts_with("- ")) << before << "\n" << line;
      }
      depth = indent;
      before = line.substr(indent);
    }
  }
}

TEST(Kubernetes, WithoutSshTheAgentRunsCommandsInPods) {
  LaunchRequest r = request(Launcher::kubernetes);
  r.remote_start = RemoteStart::without_ssh;
  r.kubernetes.name_space = "training";
  std::string text = launch_text(r);
  EXPECT_NE(text.find("- \"plm_rsh_agent\""), std::string::npos);
  size_t begin = text.find("    #!/bin/sh\n"), end = text.find("---", begin);
  std::string script;
  for (const std::string& line : lines_of(text.substr(begin, end - begin))) script += line.substr(4) + "\n";
  StandIns stand_ins;
  EXPECT_EQ(stand_ins.output_of(script, "-o ConnectionAttempts=10 llama-8b-worker-1.llama-8b.here.svc orted -x 'a b'"),
            "exec\nllama-8b-worker-1\n--\n/bin/sh\n-c\norted -x a b\n");
}

TEST(TimeLimit, EveryFormOfSlurm) {
  EXPECT_EQ(time_limit_seconds("90"), 5400);
  EXPECT_EQ(time_limit_seconds("2:30"), 150);
  EXPECT_EQ(time_limit_seconds("01:02:03"), 3723);
  EXPECT_EQ(time_limit_seconds("2-3"), 2 * 86400 + 3 * 3600);
  EXPECT_EQ(time_limit_seconds("2-3:4"), 2 * 86400 + 3 * 3600 + 240);
  EXPECT_EQ(time_limit_seconds("2-3:4:5"), 2 * 86400 + 3 * 3600 + 245);
  for (const char* bad : {"", "0", "x", "1:2:3:4", "1-", "-1", "1 ", "1h", "99999999999999999999", "::"})
    EXPECT_THROW(time_limit_seconds(bad), UserError) << bad;
}

TEST(Launch, RefusesWhatCannotBeServed) {
  using R = LaunchRequest;
  expect_refused([](R& r) { r.world_size = 0; }, Launcher::slurm, "world size");
  expect_refused([](R& r) { r.world_size = 12; }, Launcher::slurm, "8 does not divide the world of 12 ranks");
  expect_refused([](R& r) { r.cpus_per_rank = -1; }, Launcher::slurm, "CPUs per rank");
  expect_refused([](R& r) { r.srun_mpi = "a\nb"; }, Launcher::slurm, "MPI plugin");
  expect_refused([](R& r) { r.name = "a b"; }, Launcher::slurm, "name");
  expect_refused([](R& r) { r.name = "a\n#SBATCH --uid=0"; }, Launcher::slurm, "name");
  expect_refused([](R& r) { r.name = "Llama"; }, Launcher::kubernetes, "small letters");
  expect_refused([](R& r) { r.config = "a\nb"; }, Launcher::slurm, "control character");
  expect_refused([](R& r) { r.config = "-v"; }, Launcher::mpi, "option");
  expect_refused([](R& r) { r.config = ""; }, Launcher::mpi, "config");
  expect_refused([](R& r) { r.slurm.partition = "gpu"; }, Launcher::mpi, "partition");
  expect_refused([](R& r) { r.hostfile = "hosts"; }, Launcher::slurm, "hostfile");
  expect_refused([](R& r) { r.container = ""; }, Launcher::kubernetes, "--container IMAGE");
  expect_refused([](R& r) { r.container = "image"; }, Launcher::mpi, "apptainer");
  expect_refused([](R& r) { r.time_limit = "soon"; }, Launcher::slurm, "time limit");
}

}  // namespace
}  // namespace sextant
