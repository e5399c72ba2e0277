// Options of Slurm and Kubernetes: where each stands in the text, and what a script does with a run's exit code.
#include <gtest/gtest.h>

#include "launch/launchers.h"
#include "stand_ins.h"

namespace sextant {
namespace {

void expect_lines(const std::string& text, std::initializer_list<const char*> lines) {
  for (const char* line : lines) EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST(SlurmOptions, StandAtTheTopOfTheScript) {
  LaunchRequest r = request(Launcher::slurm);
  r.memory = "512G";
  r.slurm = {.partition = "gpu",
             .account = "proj42",
             .qos = "long.run",
             .constraint = "h100&(ib|roce)",
             .output = "my logs/%x-%j.out",
             .exclusive = true,
             .requeue = false};
  std::string text = launch_text(r);
  expect_lines(text, {"#SBATCH --mem=512G", "#SBATCH --exclusive", "#SBATCH --partition=gpu",
                      "#SBATCH --account=proj42", "#SBATCH --qos=long.run", "#SBATCH --constraint=\"h100&(ib|roce)\"",
                      "#SBATCH --output=\"my logs/%x-%j.out\""});
  EXPECT_EQ(text.find("requeue"), std::string::npos);
  EXPECT_EQ(text.find("doctor"), std::string::npos);
  EXPECT_LT(text.rfind("#SBATCH"), text.find("\nset ")) << "sbatch reads no option behind the first command";
  r.slurm = {};
  r.memory = "";
  text = launch_text(r);
  for (const char* absent : {"--mem", "--exclusive", "--account", "--qos", "--constraint", "--signal"})
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
  EXPECT_TRUE(has_line(text, "#SBATCH --output=%x-%j.log"));
}

// Output of the script when srun ends with `code`, and the exit code of the script.
std::string after_code(const LaunchRequest& r, int code) {
  StandIns stand_ins;
  stand_ins.replace("srun", fmt::format("#!/bin/sh\necho train\nexit {}\n", code));
  stand_ins.replace("scontrol", "#!/bin/sh\necho scontrol \"$@\"\n");
  return stand_ins.output_of("cat > inner <<'INNER'\n" + launch_text(r) +
                             "INNER\ncode=0\nSLURM_JOB_ID=17 bash inner || code=$?\necho code $code\n");
}

TEST(SlurmOptions, ARunThatSavedIsRequeued) {
  LaunchRequest r = request(Launcher::slurm);
  r.slurm.requeue = true;
  std::string text = launch_text(r);
  // Without a limit of its own, the partition's counts.
  expect_lines(text, {"#SBATCH --requeue", "#SBATCH --open-mode=append", "#SBATCH --signal=USR1@300"});
  r.time_limit = "4";
  expect_lines(launch_text(r), {"#SBATCH --signal=USR1@60"});
  EXPECT_EQ(after_code(r, 5), "train\nscontrol requeue 17\ncode 5\n");
  EXPECT_EQ(after_code(r, 0), "train\ncode 0\n");
  for (int code : {1, 2, 3, 6, 7, 137})  // a retry would give the same, or is not ours to decide
    EXPECT_EQ(after_code(r, code), fmt::format("train\ncode {}\n", code));
  r.slurm.requeue = false;
  EXPECT_EQ(after_code(r, 5), "train\ncode 5\n");
}

std::string after_preflight(const LaunchRequest& r, const std::string& doctor) {
  StandIns stand_ins;
  stand_ins.replace("srun", "#!/bin/sh\nprintf '%s\\n' \"$@\"\ncase \"$*\" in *doctor*) exit " + doctor + ";; esac\n");
  return stand_ins.output_of("cat > inner <<'INNER'\n" + launch_text(r) +
                             "INNER\ncode=0\nbash inner || code=$?\necho code $code\n");
}

TEST(Preflight, TheDoctorRunsOnAllRanksBeforeTheRun) {
  for (Launcher launcher : {Launcher::slurm, Launcher::mpi}) {
    LaunchRequest r = request(launcher);
    r.remote_start = launcher == Launcher::mpi ? RemoteStart::without_ssh : RemoteStart::ssh;
    r.preflight = true;
    r.needs_gpus = true;
    std::string healthy = after_preflight(r, "0");
    size_t doctor = healthy.find("sextant\ndoctor\n--device\ncuda\n"), train = healthy.find("sextant\ntrain\n");
    ASSERT_NE(doctor, std::string::npos) << healthy;
    ASSERT_NE(train, std::string::npos) << healthy;
    EXPECT_LT(doctor, train);
    EXPECT_TRUE(has_line(healthy.substr(0, doctor), "--ntasks=16")) << healthy;
    EXPECT_TRUE(healthy.ends_with("code 0\n")) << healthy;
    std::string faulty = after_preflight(r, "1");
    EXPECT_EQ(faulty.find("train\n"), std::string::npos) << faulty;
    EXPECT_NE(faulty.find("sextant doctor ended with exit code 1"), std::string::npos) << faulty;
    EXPECT_TRUE(faulty.ends_with("code 1\n")) << faulty;
  }
}

TEST(Memory, IsWrittenInItsLargestWholeUnit) {
  auto text = [](const std::string& given) {
    MemoryAmount amount = memory_amount(given);
    return fmt::format("{}{}", amount.count, amount.unit);
  };
  EXPECT_EQ(text("64G"), "64G");
  EXPECT_EQ(text("2048M"), "2G");
  EXPECT_EQ(text("1500M"), "1500M");
  EXPECT_EQ(text("1073741824K"), "1T");
  EXPECT_EQ(text("4096T"), "4096T");
  for (const char* bad : {"", "64", "G", "64GB", "64 G", "-1G", "0G", "1.5G", "64g", "99999999999999999999G"})
    EXPECT_THROW(memory_amount(bad), UserError) << bad;
}

LaunchRequest full_kubernetes() {
  LaunchRequest r = request(Launcher::kubernetes);
  r.memory = "256G";
  r.kubernetes = {.name_space = "training",
                  .volume = "run-files:/runs",
                  .node_selector = {"gpu.example.com/model=H100", "zone=a"},
                  .service_account = "trainer",
                  .pull_policy = PullPolicy::if_not_present};
  return r;
}

size_t count_of(const std::string& text, const std::string& line) {
  size_t count = 0;
  for (const std::string& each : lines_of(text)) count += each == line;
  return count;
}

TEST(KubernetesOptions, StandAtTheirPlaces) {
  std::string text = launch_text(full_kubernetes());
  expect_lines(text, {"  namespace: training", "                  memory: 256Gi", "                  cpu: 32",
                      "            gpu.example.com/model: \"H100\"", "            zone: \"a\""});
  // Launcher and workers alike.
  for (const char* line : {"              imagePullPolicy: IfNotPresent", "              workingDir: \"/runs\"",
                           "                - name: run", "                  mountPath: \"/runs\"",
                           "            - name: run", "              persistentVolumeClaim:",
                           "                claimName: \"run-files\"", "          serviceAccountName: trainer"})
    EXPECT_EQ(count_of(text, line), 2u) << line << "\n" << text;
  EXPECT_EQ(count_of(text, "          nodeSelector:"), 1u);  // the launcher computes nothing
  EXPECT_EQ(text.find("lost with them"), std::string::npos);
  LaunchRequest plain = request(Launcher::kubernetes);
  for (const char* absent : {"namespace", "nodeSelector", "memory:", "workingDir", "serviceAccountName", "PullPolicy"})
    EXPECT_EQ(launch_text(plain).find(absent), std::string::npos) << absent;
  EXPECT_NE(launch_text(plain).find("# Checkpoints stay in the pods and are lost with them"), std::string::npos);
}

TEST(KubernetesOptions, ADirectoryOfTheNodesIsAVolumeToo) {
  LaunchRequest r = request(Launcher::kubernetes);
  r.kubernetes.volume = "/mnt/shared fs/a:b:/data";
  std::string text = launch_text(r);
  EXPECT_EQ(count_of(text, "              hostPath:"), 2u) << text;
  EXPECT_EQ(count_of(text, "                path: \"/mnt/shared fs/a:b\""), 2u) << text;
  EXPECT_EQ(count_of(text, "                  mountPath: \"/data\""), 2u) << text;
  EXPECT_EQ(text.find("claimName"), std::string::npos);
}

TEST(KubernetesOptions, WithoutSshTheAccountIsGivenTheRight) {
  LaunchRequest r = full_kubernetes();
  r.remote_start = RemoteStart::without_ssh;
  std::string text = launch_text(r);
  EXPECT_EQ(text.find("kind: ServiceAccount\nmetadata"), std::string::npos) << "the one that was named is used";
  EXPECT_NE(text.find("  - kind: ServiceAccount\n    name: trainer\n    namespace: training\n"), std::string::npos);
  r.kubernetes.service_account = "";
  text = launch_text(r);
  EXPECT_NE(text.find("kind: ServiceAccount\nmetadata:\n  name: llama-8b-exec\n  namespace: training\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(count_of(text, "          serviceAccountName: llama-8b-exec"), 1u) << "workers need no right";
  EXPECT_EQ(count_of(text, "  namespace: training"), 5u) << "four objects and the job\n" << text;
}

TEST(Launch, AConfigForGpusMustAskForThem) {
  auto refused = [](Launcher launcher, RemoteStart start, std::string container) {
    LaunchRequest r = request(launcher);
    r.remote_start = start;
    r.container = container;
    r.container_runtime = ContainerRuntime::apptainer;
    if (launcher == Launcher::kubernetes) r.kubernetes.name_space = "training";
    r.needs_gpus = true;
    EXPECT_NO_THROW(launch_text(r));
    r.gpus_per_rank = 0;
    try {
      launch_text(r);
      return false;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("--gpus-per-rank"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("device = \"cuda\""), std::string::npos) << error.what();
      return true;
    }
  };
  EXPECT_TRUE(refused(Launcher::slurm, RemoteStart::ssh, ""));
  EXPECT_TRUE(refused(Launcher::mpi, RemoteStart::ssh, "image.sif"));
  EXPECT_TRUE(refused(Launcher::mpi, RemoteStart::without_ssh, ""));
  EXPECT_TRUE(refused(Launcher::kubernetes, RemoteStart::ssh, "image"));
  EXPECT_FALSE(refused(Launcher::mpi, RemoteStart::ssh, ""));  // mpirun hands out none
}

TEST(Launch, RefusesOptionsThatCannotBeServed) {
  using R = LaunchRequest;
  auto slurm = Launcher::slurm, kubernetes = Launcher::kubernetes, mpi = Launcher::mpi;
  expect_refused([](R& r) { r.slurm.account = "a\n#SBATCH --uid=0"; }, slurm, "control character");
  expect_refused([](R& r) { r.slurm.qos = "a\" b"; }, slurm, "qos");
  expect_refused([](R& r) { r.slurm.constraint = "--x"; }, slurm, "reads as an option");
  expect_refused([](R& r) { r.slurm.output = "$HOME/log"; }, slurm, "output");
  expect_refused([](R& r) { r.slurm.requeue = true; }, mpi, "requeue");
  expect_refused([](R& r) { r.slurm.account = "a"; }, kubernetes, "account");
  expect_refused([](R& r) { r.kubernetes.volume = "a:/b"; }, slurm, "volume");
  expect_refused([](R& r) { r.memory = "lots"; }, slurm, "such as 64G");
  expect_refused([](R& r) { r.memory = "1G"; }, mpi, "memory");
  expect_refused([](R& r) { r.preflight = true; }, mpi, "preflight");
  expect_refused([](R& r) { r.preflight = true; }, kubernetes, "preflight");
  expect_refused([](R& r) { r.kubernetes.name_space = "Training"; }, kubernetes, "namespace");
  expect_refused([](R& r) { r.remote_start = RemoteStart::without_ssh; }, kubernetes, "--namespace NAME");
  expect_refused([](R& r) { r.kubernetes.service_account = "-a"; }, kubernetes, "service account");
  for (const char* bad : {"runs", "runs:", ":/runs", "runs:here", "runs:/", "Runs:/runs"})
    expect_refused([&](R& r) { r.kubernetes.volume = bad; }, kubernetes, "volume");
  for (const char* bad : {"gpu", "=h100", "a b=c", "a=b c", "a/b/c=d"})
    expect_refused([&](R& r) { r.kubernetes.node_selector = {bad}; }, kubernetes, "KEY=VALUE");
}

}  // namespace
}  // namespace sextant
