// `sextant run`: a run that fails is restarted and ends with the bits of one that was left alone; what cannot help is
// not retried; requests to stop reach the run; and nothing is left behind.
#include <gtest/gtest.h>

#include "expectations.h"
#include "run_fixture.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

TEST_F(RunVerb, EveryFaultIsSurvivedWithTheSameBits) {
  std::string mesh =
      "mesh.dp=2 train.check_replicas_every=1 train.non_finite_steps=1 checkpoint.background=false "
      "train.check_gemms=1 ";
  std::vector<std::string> expected = undisturbed(mesh);
  Outcome outcome = run_command(arguments(
      "run", mesh + "--inject throw@2:1 --inject kill@3 --inject nan@4:1 --inject flip_gemm@5:1 --inject corrupt@6:1 "
                    "--inject stop@7 --inject abort@8 --stale 3 --json --backoff 0.1"));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(losses(), expected);
  nlohmann::json told = report(outcome);
  ASSERT_TRUE(told.is_object()) << outcome.output;
  EXPECT_EQ(told["outcome"], "finished");
  EXPECT_EQ(told["failures"], 7);
  std::vector<std::string> causes;
  for (const nlohmann::json& attempt : told["attempts"]) causes.push_back(attempt["cause"]);
  EXPECT_EQ(causes, (std::vector<std::string>{"run failed", "signal", "non-finite, transient", "corruption",
                                              "corruption", "hang", "signal", "finished"}));
  EXPECT_EQ(told["attempts"][0]["rank"], 1);
  EXPECT_LE(told["steps_repeated"].get<int>(), 7 * 2);  // at most one interval each
  EXPECT_GT(told["goodput"].get<double>(), 0);
  EXPECT_EQ(told["attempts"][3]["rank"], 1);
  EXPECT_TRUE(told["attempts"][4].value("rank", nlohmann::json()).is_null());  // of two replicas nobody knows which
  EXPECT_EQ(events("restart"), 7);
  EXPECT_EQ(events("corruption"), 2);
  std::string log = read_file(place_ / "run/run.log");
  expect_words(log, {"== attempt 1,", "== attempt 8,", "step 8/8", "hang: no heartbeat of rank-0",
                     "is late: last seen in step 7", "is stopped by a signal (SIGSTOP)",
                     "step 4: transient: run again on this host it is finite"});
  EXPECT_EQ(events("hang"), 1);
  EXPECT_EQ(events("verdict"), 1);
  expect_nothing_left();
}

TEST_F(RunVerb, AFullDiskPasses) {
  std::vector<std::string> expected = undisturbed("");
  Outcome outcome = run_command(arguments("run", "--inject disk_full=2@2 --inject slow=20@3"));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(losses(), expected);
  // The first checkpoint cannot be written, and none stands: that ends the attempt.
  expect_words(outcome.output,
               {"No space left on device", "attempt 1 failed", "exit code 3 (run failed)", "attempts  2", "goodput"});
}

TEST_F(RunVerb, WhatCannotHelpIsNotRetried) {
  Outcome bad = run_command(arguments("run", "checkpoint.resume=/no/such/place"));
  EXPECT_EQ(bad.code, 2) << bad.output;
  expect_words(bad.output, {"given up: exit code 2 (bad input): a restart gives the same", "attempts  1"});
  // Without a replay it is tried once more; with one it is known to be no use.
  std::string diverges = "train.non_finite_steps=1 optimizer.lr=1e20 optimizer.schedule=constant --backoff 0 ";
  Outcome nan = run_command(arguments("run", diverges + "--replay-limit 0"));
  EXPECT_EQ(nan.code, 6) << nan.output;
  expect_words(nan.output, {"given up: exit code 6 (non-finite)", "no checkpoint beyond step", "attempts  2"});
  Outcome known = run_command(arguments("run", diverges, "known"));
  EXPECT_EQ(known.code, 6) << known.output;
  expect_words(known.output, {"it is not finite again on this host", "there is no other device", "first in ",
                              "given up: exit code 6 (non-finite, reproducible)", "attempts  1"});
  Outcome often = run_command(
      arguments("run", "--retries 1 --inject throw@1 --inject throw@1 --inject throw@1 --backoff 0", "other"));
  EXPECT_EQ(often.code, 3) << often.output;
  expect_words(often.output, {"--retries 1", "attempts  2"});
}

TEST_F(RunVerb, WrongOptionsAreRefused) {
  expect_refusal(run_command(arguments("run", "--mpi 3")), 2, {"--mpi", "3 ranks", "has 1"});
  expect_refusal(run_command(arguments("run", "--slurm-step"), "env -u SLURM_JOB_ID"), 2, {"--slurm-step", "salloc"});
  expect_refusal(run_command(arguments("run", "--launcher-arg --oversubscribe")), 2, {"--launcher-arg", "threads"});
  expect_refusal(run_command(arguments("run", "--inject kill@9")), 2, {"--inject", "a step from 1 to 8"});
  expect_refusal(run_command(arguments("run", "--hosts none")), 2, {"--hosts", "--mpi"});
  EXPECT_FALSE(fs::exists(place_ / "run"));
}

// A fault that this test makes, few open files, is found before the first step and named; without it the run starts,
// unless the machine has another, which is then named.
TEST_F(RunVerb, PreflightDecidesWhetherARunStarts) {
  std::string preflight = arguments("run", "train.steps=2 --preflight --burn 0.2 --retries 0");
  Outcome faulty = run_command(preflight, "ulimit -n 48;");
  EXPECT_EQ(faulty.code, 1) << faulty.output;
  expect_words(faulty.output, {"== preflight of attempt 1", "== failure: limits, open files"});
  EXPECT_FALSE(fs::exists(place_ / "run/metrics.jsonl"));
  Outcome outcome = run_command(preflight);
  expect_words(outcome.output, {"== preflight of attempt 1"});
  bool found = outcome.output.find("== failure: ") != std::string::npos;
  EXPECT_EQ(outcome.code, found ? 1 : 0) << outcome.output;
  EXPECT_EQ(lines_in(place_ / "run/metrics.jsonl"), found ? 0 : 2);
  EXPECT_EQ(outcome.output.find("failure: limits, open files"), std::string::npos) << outcome.output;
}

TEST_F(RunVerb, SignalsAndSwitchesReachTheRun) {
  StartedCommand run(fmt::format("exec {} {}", checkout::kBinary, arguments("run", kLong + "checkpoint.every=0")),
                     place_ / "log");
  ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 2; })) << run.output();
  write_text(place_ / "run/SAVE", "");
  EXPECT_TRUE(comes_true([&] { return !fs::exists(place_ / "run/SAVE"); })) << run.output();
  EXPECT_TRUE(comes_true([&] { return events("checkpoint") >= 1; })) << run.output();
  Outcome second = run_command(arguments("run", kLong));
  expect_refusal(second, 2, {"another supervisor is at work here"});
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 5) << run.output();
  expect_words(run.output(), {"asked to save and stop", "outcome   stopped"});
  write_text(place_ / "run/STOP", "");
  expect_words(run_command(arguments("run", kLong)).output, {"remove", "STOP to go on"});
  EXPECT_EQ(run_command(arguments("train", kLong)).code, 5);
  fs::remove(place_ / "run/STOP");
  expect_nothing_left();
}

TEST_F(RunVerb, AKilledSupervisorLeavesNothingThatTheNextOneCannotEnd) {
  StartedCommand run(fmt::format("exec {} {}", checkout::kBinary, arguments("run", kLong)), place_ / "log");
  ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 2; })) << run.output();
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  // Its child was asked to save and stop, and does.
  EXPECT_TRUE(comes_true([&] { return processes_in(place_.path(), Counted::ranks) == 0; }));
  int64_t done = static_cast<int64_t>(lines_in(place_ / "run/metrics.jsonl"));
  Outcome next = run_command(arguments("run", fmt::format("train.steps={}", done + 1)));
  EXPECT_EQ(next.code, 0) << next.output;
  expect_words(next.output, {fmt::format("(step {})", done)});
  expect_nothing_left();
}

// Between two attempts nobody holds the run's own lock.
TEST_F(RunVerb, ATrainBetweenTwoAttemptsIsRefusedAndDisturbsNothing) {
  std::vector<std::string> expected = undisturbed("");
  StartedCommand run(
      fmt::format("exec {} {}", checkout::kBinary, arguments("run", "--inject throw@1 --inject throw@1 --backoff 5")),
      place_ / "log");
  ASSERT_TRUE(comes_true([&] {
    return fs::exists(place_ / "log") && run.output().find("next attempt in 5 s") != std::string::npos;
  })) << run.output();
  expect_refusal(run_command(arguments("train", "")), 2, {"another supervisor is at work here: process"});
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_EQ(losses(), expected);
  expect_words(run.output(), {"attempts  3"});
}

// A stand-in for mpirun: a hostfile that names `bad` leaves a heartbeat of a rank that failed there; else the ranks are
// threads.
class RunOnHosts : public RunVerb {
 protected:
  std::string with_stand_in() {
    fs::create_directories(place_ / "bin");
    write_text(place_ / "bin/mpirun", fmt::format(R"(#!/bin/bash
while [ "$1" != "{0}" ]; do [ "$1" = --hostfile ] && hosts=$2; shift; done
if grep -q bad "$hosts"; then
  mkdir -p {1}/heartbeat
  echo '{{"rank":1,"host":"bad","pid":1,"state":"failed","step":1,"action":"","op":"","beside":"","waiting_for":-1,"time":"","reason":"broken"}}' > {1}/heartbeat/rank-1.json
  exit 7
fi
exec "$@"
)",
                                                  checkout::kBinary, place_ / "run"));
    fs::permissions(place_ / "bin/mpirun", fs::perms::owner_all);
    return fmt::format("export PATH={}:$PATH; ", place_ / "bin");
  }
};

TEST_F(RunOnHosts, ASpareTakesThePlaceOfASuspect) {
  write_text(place_ / "hosts", "good slots=1\nbad slots=1\nspare slots=1\n");
  Outcome outcome = run_command(
      arguments("run", fmt::format("mesh.dp=2 --mpi 2 --hosts {} --backoff 0", place_ / "hosts")), with_stand_in());
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  expect_words(outcome.output, {"rank 1 on bad", "bad is set aside", "attempts  3"});
  EXPECT_EQ(read_file(place_ / "run/active-hosts"), "good slots=1\nspare slots=1\n");
}

TEST_F(RunOnHosts, WithoutSparesTheMeshShrinksAndGrowsAgain) {
  write_text(place_ / "hosts", "good slots=1\nbad slots=1\n");
  StartedCommand run(
      fmt::format("{} exec {} {}", with_stand_in(), checkout::kBinary,
                  arguments("run", fmt::format("mesh.dp=2 {} checkpoint.keep=1 --mpi 2 --hosts {} --backoff 0", kLong,
                                               place_ / "hosts"))),
      place_ / "log");
  ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 2; })) << run.output();
  expect_words(run.output(), {"mesh: dp 1 × tp 1 × pp 1 × cp 1, 8 microbatches for each rank and step"});
  write_text(place_ / "hosts", "good slots=2\n");  // repaired, under its old neighbour's name
  EXPECT_TRUE(comes_true([&] { return run.output().find("hosts have returned") != std::string::npos; }));
  EXPECT_TRUE(comes_true([&] { return run.output().find("mesh: dp 2") != std::string::npos; })) << run.output();
  EXPECT_TRUE(comes_true([&] { return events("restart") >= 2; })) << run.output();
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 5) << run.output();
}

// doctor names the host before anything is trained there; a spare takes its place.
TEST_F(RunOnHosts, AHostThatPreflightFindsUnfitIsSetAside) {
  write_text(place_ / "hosts", "good slots=1\nbad slots=1\nspare slots=1\n");
  std::string stand_in = with_stand_in();
  write_text(place_ / "bin/mpirun", fmt::format(R"sh(#!/bin/bash
while [ "$1" != "{0}" ]; do [ "$1" = --hostfile ] && hosts=$2; shift; done
if [ "$2" = train ]; then exec "$@"; fi
echo "$@" >> {1}/words
found='{{"group":"burn","name":"corruption","status":"failure","found":"a sum differs","where":"rank 1 (bad)"}}'
grep -q bad "$hosts" || {{ echo '{{"findings":[]}}'; exit 0; }}
echo "{{\"findings\":[$found]}}"
exit 1
)sh",
                                                checkout::kBinary, place_.path().string()));
  Outcome outcome = run_command(
      arguments("run",
                fmt::format("mesh.dp=2 --mpi 2 --hosts {} --preflight --burn 0.5 --backoff 0", place_ / "hosts")),
      stand_in);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  expect_words(outcome.output, {"== failure: burn, corruption: a sum differs, on rank 1 (bad)", "bad is set aside",
                                "1 × exit code 1 (unhealthy)", "attempts  2"});
  EXPECT_EQ(read_file(place_ / "run/active-hosts"), "good slots=1\nspare slots=1\n");
  expect_words(read_file(place_ / "words"), {"--burn 0.5 --device auto"});
}

// Four ranks, three and four again. Eight microbatches: with three ranks the last of one is empty.
TEST_F(RunOnHosts, AReproducibleRunShrinksAndGrowsWithTheSameBits) {
  const std::string exact = "train.reproducible=mesh train.steps=30 ";
  std::vector<std::string> expected = undisturbed(exact);  // on one rank
  write_text(place_ / "hosts", "good slots=4\n");
  StartedCommand run(fmt::format("{} exec {} {}", with_stand_in(), checkout::kBinary,
                                 arguments("run", fmt::format("{} mesh.dp=4 mesh.zero=1 --mpi 4 --hosts {} --backoff 0 "
                                                              "--inject slow=300@2 --inject kill@5 --inject slow=200@6",
                                                              exact, place_ / "hosts"))),
                     place_ / "log");
  ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 2; })) << run.output();
  write_text(place_ / "hosts", "good slots=3\n");
  ASSERT_TRUE(comes_true([&] { return run.output().find("mesh: dp 3") != std::string::npos; })) << run.output();
  ASSERT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 6; })) << run.output();
  write_text(place_ / "hosts", "good slots=4\n");
  EXPECT_EQ(run.wait(), 0) << run.output();
  expect_words(run.output(),
               {"3 microbatches for each rank", "hosts have returned", "mesh: dp 4", "outcome   finished"});
  EXPECT_EQ(losses(), expected);
}

// Likewise for srun: its words are kept, and the ranks are threads.
TEST_F(RunOnHosts, SlurmStepsAreStartedWithSrun) {
  fs::create_directories(place_ / "bin");
  write_text(place_ / "bin/srun",
             fmt::format("#!/bin/bash\necho \"$@\" >> {}\nwhile [ \"$1\" != {} ]; do shift; done\nexec \"$@\"\n",
                         place_ / "words", checkout::kBinary));
  fs::permissions(place_ / "bin/srun", fs::perms::owner_all);
  Outcome outcome =
      run_command(arguments("run", "mesh.dp=2 --slurm-step --launcher-arg --cpus-per-task=1 --inject kill@5"),
                  fmt::format("export SLURM_JOB_ID=1 PATH={}:$PATH; ", place_ / "bin"));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::string words = read_file(place_ / "words");
  EXPECT_EQ(count_of(words, "--kill-on-bad-exit=1 --disable-status --ntasks=2 --cpus-per-task=1 "), 2u) << words;
}

// At most checkpoint.local_every steps are done again, whatever checkpoint.every says.
TEST_F(RunVerb, LocalCheckpointsBoundWhatIsDoneAgain) {
  std::string mesh = "mesh.dp=2 checkpoint.every=50 ";
  std::vector<std::string> expected = undisturbed(mesh);
  Outcome outcome =
      run_command(arguments("run", fmt::format("{} checkpoint.local_every=2 checkpoint.local_dir={} --inject kill@4 "
                                               "--inject kill@8:1 --json --backoff 0",
                                               mesh, place_ / "memory")));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(losses(), expected);
  EXPECT_EQ(report(outcome)["failures"], 2);
  EXPECT_EQ(report(outcome)["steps_repeated"], 2);  // those of steps 3 and 7
  EXPECT_TRUE(fs::is_empty(place_ / "memory"));
}

TEST_F(RunVerb, SlowRanksAreNamedWithAReason) {
  struct Case {
    const char *fault, *reason;
  };
  for (const Case& c : {Case{"slow=40@1:1", "asleep"}, Case{"slow_input=40@1:1", "slow input"}}) {
    Outcome outcome = run_command(arguments(
        "train", fmt::format("mesh.dp=2 train.steps=31 checkpoint.every=0 train.log_every=100 --inject {}", c.fault),
        c.fault));
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    std::string log = read_file(place_ / fmt::format("{}/events.jsonl", c.fault));
    expect_words(log, {"\"event\":\"straggler\"", fmt::format("rank 1 is slow ({})", c.reason), "\"rank\":1"});
  }
}

TEST_F(RunUnderMpi, LostRanksAreReplaced) {
  std::vector<std::string> expected = undisturbed("mesh.dp=2");
  Outcome outcome = run_command(
      arguments("run", "mesh.dp=2 --mpi 2 --launcher-arg --oversubscribe --inject kill@3:1 --inject throw@6 --json"),
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0; ");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(losses(), expected);
  nlohmann::json told = report(outcome);
  EXPECT_EQ(told["failures"], 2);
  EXPECT_EQ(told["attempts"][0]["rank"], 1);
  EXPECT_EQ(told["attempts"][1]["rank"], 0);
  expect_nothing_left();
}

// Two ranks as two hosts: what the lost one held, the other has too.
TEST_F(RunUnderMpi, ALostHostCostsNoMoreThanALostProcess) {
  std::string mesh = "mesh.dp=2 mesh.zero=1 checkpoint.every=50 ";
  std::vector<std::string> expected = undisturbed(mesh);
  Outcome outcome = run_command(
      arguments("run", fmt::format("{} checkpoint.local_every=2 checkpoint.local_dir={} checkpoint.replication_jump=1 "
                                   "--mpi 2 --launcher-arg --oversubscribe --inject node@8:1 --json",
                                   mesh, place_ / "memory")),
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0; ");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(losses(), expected);
  EXPECT_EQ(report(outcome)["steps_repeated"], 1);
}

}  // namespace
}  // namespace sextant
