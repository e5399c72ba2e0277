// `sextant bench` as a person uses it: tables, JSON that the other subverbs read, an interrupted run, and what is
// refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/files.h"

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

TEST(Bench, InterruptedItReportsWhatItHas) {
  ScratchPlace place("bench-interrupted");
  // Minutes of work, ended by one Ctrl-C as soon as the third shape is begun, however long that takes.
  std::string sweep = "bench gemm --device cpu --threads 1 --seconds 0.001 --m 64:640:64 --n 64:640:64 --k 64:640:64";
  std::string interrupt = " & sweep=$!; tries=0; until grep -q '(3 of 1000)' " + (place / "progress") +
                          " || [ $tries = 1200 ]; do sleep 0.05; tries=$((tries + 1)); done; kill -INT $sweep; wait $sweep";
  Outcome outcome = run_command(sweep + " 2>" + (place / "progress") + interrupt);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("Interrupted: these are the results so far"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("64x64x64"), std::string::npos) << outcome.output;
  EXPECT_NE(read_file(place / "progress").find("gemm 64x64x64 fp32 (1 of 1000)"), std::string::npos) << "no progress";
}

TEST(Bench, WhatCannotBeMeasuredIsRefused) {
  ScratchPlace place("bench-bad");
  write_file_atomically(place / "bad.json", "{\"environment\": 3}");
  for (const std::string& bad :
       {std::string("bench gemm --shape 12x12"), std::string("bench gemm --device cpu --type fp8 --shape 8x8x8"),
        std::string("bench gemm --m 5:1:1"), "bench compare " + (place / "bad.json") + " " + (place / "bad.json"),
        "bench report " + (place / "none.json") + " --html x.html", std::string("bench sizing none.toml"),
        "bench sizing " + config_path("tiny-llama.toml") + " model.vocab=64 --vary colour"}) {
    Outcome outcome = run_command(bad);
    EXPECT_EQ(outcome.code, 2) << bad << "\n" << outcome.output;
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
