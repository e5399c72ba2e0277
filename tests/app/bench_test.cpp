// `sextant bench` as a person uses it: tables, JSON that the other subverbs read, an interrupted run, and what is
// refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

TEST(Bench, JsonGoesIntoCompareAndReport) {
  ScratchPlace place("bench");
  std::string gemm = "bench gemm --device cpu --threads 1 --shape 32x32x32 --shape 48x16x8 --seconds 0.001 --json";
  ASSERT_EQ(run_command(gemm + " 2>&1 >" + (place / "a.json")).code, 0);
  ASSERT_EQ(run_command(gemm + " 2>&1 >" + (place / "b.json")).code, 0);
  auto json = nlohmann::json::parse(read_file(place / "a.json"));
  ASSERT_EQ(json["results"].size(), 2u);
  EXPECT_EQ(json["results"][1]["shape"], "48x16x8");
  EXPECT_DOUBLE_EQ(json["results"][1]["flops"], 2.0 * 48 * 16 * 8);
  EXPECT_TRUE(json["environment"].contains("temperature"));
  Outcome compared = run_command("bench compare " + (place / "a.json") + " " + (place / "b.json"));
  EXPECT_EQ(compared.code, 0);
  EXPECT_NE(compared.output.find("of 2 results changed"), std::string::npos) << compared.output;
  EXPECT_EQ(run_command("bench report " + (place / "a.json") + " --html " + (place / "a.html")).code, 0);
  EXPECT_NE(read_file(place / "a.html").find("<svg"), std::string::npos);
}

// Minutes of work, ended by one Ctrl-C as soon as its progress has come to `line`, however long that takes.
Outcome interrupted_at(const std::string& line, const std::string& command, const ScratchPlace& place) {
  std::string progress = place / "progress";
  std::string interrupt = fmt::format(
      " & bench=$!; tries=0; until grep -q '{}' {} || [ $tries = 1200 ]; do sleep 0.05; tries=$((tries + 1)); done; "
      "kill -INT $bench; wait $bench",
      line, progress);
  return run_command(command + " 2>" + progress + interrupt);
}

struct LongBench {
  const char *command, *line;
  std::vector<std::string> has;  // what is reported then
};

TEST(Bench, InterruptedEachReportsWhatItHas) {
  ScratchPlace place("bench-interrupted");
  std::string cpu = " --device cpu --threads 1 ";
  for (const LongBench& bench : std::vector<LongBench>{
           {"gemm --seconds 0.001 --m 64:640:64 --n 64:640:64 --k 64:640:64", "(3 of 1000)", {"64x64x64"}},
           {"gemm --mamf --step 16 --most 512", "mamf fp32: .* 5 so far", {"most achievable", "shapes tried"}},
           {"memory", "(2 of 20)", {"copy", "1.00 MiB"}},
           {"attention", "(2 of 12)", {"attention", "b8 s128 h8/8 d64"}},
           {"ops", "(3 of ", {"GB/s"}},
           {"sizing TINY model.vocab=64 batch.microbatch=1 batch.seq=16 --vary vocab=64,65,66,67,68,69,70,71",
            "vocab 66",
            {"vocab", "step", "layer"}}}) {
    std::string command = "bench " + std::string(bench.command) + cpu;
    if (size_t tiny = command.find("TINY"); tiny != command.npos)
      command.replace(tiny, 4, config_path("tiny-llama.toml"));
    Outcome outcome = interrupted_at(bench.line, command, place);
    EXPECT_EQ(outcome.code, 5) << command << outcome.output;
    for (const std::string& part : bench.has)
      EXPECT_NE(outcome.output.find(part), std::string::npos) << command << outcome.output;
    EXPECT_NE(outcome.output.find("Interrupted: these are the results so far"), std::string::npos)
        << command << outcome.output;
  }
}

TEST(Bench, InterruptedAmongRanksItReportsWhatItHas) {
  ScratchPlace place("bench-ranks-interrupted");
  Outcome comm = interrupted_at("all_reduce over all ranks, 65536 bytes", "bench comm --ranks 2 --device cpu", place);
  EXPECT_EQ(comm.code, 5) << comm.output;
  for (const char* part : {"all_reduce", "16.00 KiB", "Interrupted: these are the results so far"})
    EXPECT_NE(comm.output.find(part), std::string::npos) << part << comm.output;
  std::string storage = place / "storage";
  std::filesystem::create_directory(storage);
  Outcome disk = interrupted_at("checkpoint 2 of 5", "bench storage --gb 0.25 --ranks 2 " + storage, place);
  EXPECT_EQ(disk.code, 5) << disk.output;
  for (const char* part : {"checkpoint write", "Interrupted: these are the results so far", "minutes a day"})
    EXPECT_NE(disk.output.find(part), std::string::npos) << part << disk.output;
  EXPECT_TRUE(std::filesystem::is_empty(storage));
}

TEST(Bench, HalfAMachineIsNotSaved) {
  ScratchPlace place("bench-half");
  Outcome outcome = interrupted_at(
      "(2 of ", "bench machine --device cpu --threads 1 --ranks 1 --save " + (place / "here.toml"), place);
  EXPECT_EQ(outcome.code, 5) << outcome.output;
  EXPECT_NE(outcome.output.find("kinds of op"), std::string::npos) << outcome.output;
  EXPECT_NE(read_file(place / "progress").find("nothing was saved"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(place / "here.toml"));
}

// A CPU's machine as `bench machine` writes it, less what it need not have.
constexpr const char* kMachine = R"(name = "here"
date = "2026-11-15"
[device]
name = "cpu"
units = 1
clock_mhz = 1000
flops_per_clock_and_unit = 32
memory_gb = 1
memory_tb_s = 0.01
kind = "cpu"
[device.peak_tflops]
fp32 = 0.032
[node]
devices = 2
[level.processor]
devices = 0
gb_s = 10
latency_us = 1
[efficiency]
kernel_s = 1e-06
imbalance = 1
[ops]
linear = [[256, 64, 192, 12.5]]
[source]
device = "made up"
level = "made up"
efficiency = "made up"
ops = "made up"
)";

TEST(Bench, MessagesAndStorageGoIntoTheMachine) {
  ScratchPlace place("bench-save");
  std::string file = place / "here.toml";
  write_file_atomically(file, kMachine);
  std::string comm = "bench comm --ranks 2 --device cpu --min 1K --max 4K --calls 5 --save " + file;
  for (int again = 0; again < 2; ++again) {  // the second reads what the first wrote
    Outcome outcome = run_command(comm);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  std::string saved = read_file(file);
  for (const char* part : {"all_reduce = [", "reduce_scatter = [", "shift = [", "[2, 4096, ", "[256, 64, 192, 12.5]",
                           "measured by sextant bench comm", "the rest as before: made up"})
    EXPECT_NE(saved.find(part), std::string::npos) << part << "\n" << saved;
  EXPECT_EQ(saved.find("gb_s = 10\n"), std::string::npos) << "the link is the old one";
  Outcome storage = run_command("bench storage --gb 0.01 " + place.path().string() + " --save " + file);
  EXPECT_EQ(storage.code, 0) << storage.output;
  EXPECT_EQ(read_file(file).find("checkpoint_gb_s = 0\n"), std::string::npos);
  EXPECT_EQ(run_command("bench memory --device cpu --mb 1 --seconds 0.001 --save " + file).code, 0);
}

// Each option of experts changes what is measured, and a CPU's machine keeps it among its ops.
TEST(Bench, GroupedGemmsAreOfTheSizesAskedFor) {
  ScratchPlace place("bench-experts");
  write_file_atomically(place / "here.toml", kMachine);
  std::string gemm = "bench gemm --device cpu --threads 1 --seconds 0.001 --json -q --experts ";
  auto sizes = [](const std::string& output) {
    std::vector<std::vector<double>> sizes;
    nlohmann::json report = nlohmann::json::parse(output);
    for (const auto& result : report.at("results")) {
      EXPECT_EQ(result.at("kind"), "grouped gemm");
      EXPECT_LT(result.at("error").get<double>(), 1) << result.at("name");
      sizes.push_back(result.at("size").get<std::vector<double>>());
    }
    return sizes;
  };
  std::string small = "4 --tokens 24 --hidden 16 --width 8";
  EXPECT_EQ(sizes(run_command(gemm + small).output),
            (std::vector<std::vector<double>>{
                {4, 12, 16, 16}, {4, 12, 16, 8}, {4, 12, 16, 16}, {4, 12, 8, 16}, {4, 16, 16, 12}, {4, 16, 8, 12}}));
  EXPECT_EQ(sizes(run_command(gemm + small + " --per-token 1").output)[0], (std::vector<double>{4, 6, 16, 16}));
  EXPECT_EQ(sizes(run_command(gemm + "4 --hidden 16 --width 8 --tokens 12:24:12").output).size(), 12u);
  EXPECT_NE(run_command(gemm + small + " --imbalance 1.5").output.find("4x12x16x16 imbalance 1.5"), std::string::npos);
  EXPECT_EQ(run_command(gemm + small + " --save " + (place / "here.toml")).code, 0);
  std::string saved = read_file(place / "here.toml");
  EXPECT_NE(saved.find("expert_down_weight_gradient = [\n  [64, 8, 12, "), std::string::npos) << saved;
}

TEST(Bench, OpsOfAConfigAreTimedInItsSteps) {
  std::string ops = "bench ops --device cpu --threads 1 --seconds 0.001 -q --config " + config_path("tiny-moe.toml");
  Outcome alone = run_command(ops), divided = run_command(ops + " --set mesh.dp=2 --set mesh.ep=2");
  for (const char* op : {"route ", "expert_up ", "expert_down_weight_gradient "})
    EXPECT_NE(alone.output.find(op), std::string::npos) << alone.output;
  for (const char* op : {"dispatch_map ", "dispatch ", "expert_rows ", "combine "})
    EXPECT_NE(divided.output.find(op), std::string::npos) << divided.output;
  EXPECT_EQ(run_command(ops + " --only route_backward").output.find("expert_up"), std::string::npos);
}

// `bench compare` of a result with itself, and with a copy where the times of one entry are ten times as long.
void expect_only_change_named(const std::string& command, const std::string& key, const ScratchPlace& place) {
  ASSERT_EQ(run_command(command + " --json 2>&1 >" + (place / "a.json")).code, 0) << command;
  auto json = nlohmann::json::parse(read_file(place / "a.json"));
  std::string all = std::to_string(json["results"].size());
  Outcome same = run_command("bench compare " + (place / "a.json") + " " + (place / "a.json"));
  EXPECT_NE(same.output.find("0 of " + all + " results changed"), std::string::npos) << same.output;
  bool found = false;
  for (auto& result : json["results"]) {
    std::string own = fmt::format("{} {} {} {}", result["kind"].get<std::string>(), result["name"].get<std::string>(),
                                  result["shape"].get<std::string>(), result["dtype"].get<std::string>());
    if (own.find(key) == own.npos) continue;
    found = true;
    double longest = 0;
    for (auto& seconds : result["samples"]) longest = std::max(longest, seconds.get<double>());
    for (auto& seconds : result["samples"]) seconds = seconds.get<double>() + 10 * longest;
  }
  EXPECT_TRUE(found) << key;
  write_file_atomically(place / "b.json", json.dump());
  Outcome changed = run_command("bench compare " + (place / "a.json") + " " + (place / "b.json"));
  EXPECT_NE(changed.output.find("1 of " + all + " results changed"), std::string::npos) << changed.output;
  EXPECT_NE(changed.output.find(key), std::string::npos) << changed.output;
  EXPECT_NE(changed.output.find("slower"), std::string::npos) << changed.output;
}

TEST(Bench, CompareNamesWhatChangedBetweenRanksAndOnDisk) {
  ScratchPlace place("bench-compare");
  std::string comm = "bench comm --ranks 2 --device cpu --min 1K --max 4K --calls 8";
  for (const char* key : {"all_gather in place over all ranks 4096", "latency 0-1", "link 0-1", "beside computing"})
    expect_only_change_named(comm, key, place);
  std::string storage = "bench storage --gb 0.01 " + place.path().string();
  for (const char* key : {"checkpoint read", "small file opened"}) expect_only_change_named(storage, key, place);
}

TEST(Bench, WhatCannotBeMeasuredIsRefusedWithPlaceAndRemedy) {
  ScratchPlace place("bench-bad");
  write_file_atomically(place / "bad.json", "{\"environment\": 3}");
  write_file_atomically(place / "here.toml", kMachine);
  write_file_atomically(place / "gpu.toml", read_file(fmt::format("{}/machines/h200.toml", checkout::kSources)));
  std::string bad = place / "bad.json", tiny = config_path("tiny-llama.toml");
  struct Refused {
    std::string command;
    std::vector<std::string> says;  // where, and what would do
  };
  for (const Refused& refused : std::vector<Refused>{
           {"gemm --shape 12x12", {"--shape", "rows, columns and depth"}},
           {"gemm --device cpu --type fp8 --shape 8x8x8", {"--type", "one of fp32"}},
           {"gemm --m 5:1:1", {"--m", "START at most STOP"}},
           {"gemm --experts 0", {"--experts", "1"}},
           {"gemm --experts 4 --per-token 8", {"--per-token", "at most as many as --experts"}},
           {"gemm --experts 8 --per-token 2 --imbalance 5", {"--imbalance", "at most 4"}},
           {"gemm --experts 8 --imbalance 0.5", {"--imbalance", "1"}},
           {"gemm --experts 8 --tokens 9:1:1", {"--tokens", "START at most STOP"}},
           {"gemm --experts 4096 --hidden 1000000 --width 1000000", {"--experts", "at most 1e12"}},
           {"gemm --experts 8 --device cpu --type fp8", {"--type", "one of fp32"}},
           {"gemm --mamf --step 1024 --most 512 --device cpu", {"--most", "1024"}},
           {"gemm --config none.toml", {"none.toml"}},
           {"gemm --seconds 0", {"--seconds", "0.001"}},
           {"gemm --device tpu", {"--device", "cuda"}},
           {"gemm --shape 8x8x8 --device cpu --save " + (place / "no/x.toml"), {"--save", "directory that exists"}},
           {"gemm --shape 8x8x8 --device cpu --save " + (place / "new.toml"), {"--save", "bench machine"}},
           {"gemm --shape 8x8x8 --device cpu --save " + (place / "gpu.toml"), {"--save", "--device cuda"}},
           {"machine --device cpu --save " + (place / "no/x.toml"), {"--save", "directory that exists"}},
           {"memory --mb 0", {"--mb"}},
           {"attention --head-dim 0", {"--head-dim"}},
           {"ops --only nonesuch --device cpu", {"--only", "nonesuch"}},
           {"ops --only route --device cpu --config " + tiny, {"--only", "tiny-llama.toml", "route"}},
           {"ops --config none.toml", {"none.toml"}},
           {"comm --ranks 1", {"--ranks"}},
           {"comm --op gossip", {"--op", "one of all_reduce"}},
           {"comm --min 1M --max 1K", {"--min, --max", "the largest last"}},
           {"comm --ranks 2 --device cpu --save " + (place / "gpu.toml"), {"--save", "--device cuda"}},
           {"storage " + (place / "none"), {"none", "an existing directory"}},
           {"storage --gb 1e6 " + place.path().string(), {"GB free", "--gb"}},
           {fmt::format("compare {0} {0}", bad), {"bad.json: environment", "an object"}},
           {"report " + (place / "none.json") + " --html x.html", {"none.json"}},
           {"sizing none.toml", {"none.toml"}},
           {"sizing " + tiny + " model.vocab=64 --vary colour", {"--vary", "hidden, heads"}}}) {
    Outcome outcome = run_command("bench " + refused.command);
    EXPECT_EQ(outcome.code, 2) << refused.command << "\n" << outcome.output;
    for (const std::string& part : refused.says)
      EXPECT_NE(outcome.output.find(part), std::string::npos) << refused.command << "\n" << outcome.output;
  }
}

TEST(Bench, SizingNamesItsSizes) {
  Outcome outcome = run_command(
      "bench sizing " + config_path("tiny-llama.toml") +
      " model.vocab=64 batch.microbatch=1 batch.seq=16 --device cpu --threads 1 --seconds 0.01 --vary vocab=64,65");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* part : {"vocab 64", "vocab 65", "step", "layer"})
    EXPECT_NE(outcome.output.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace sextant
