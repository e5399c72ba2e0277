// A run that needs more memory than the device has ends with the exit code for this case, and no figure looks as if it
// ran.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/files.h"
#include "command.h"

namespace sextant {
namespace {

constexpr int kDoesNotFit = number_of(ExitCode::does_not_fit);

// 70 B parameters on one H100.
const std::string kTooLarge =
    config_path("plan/llama3-70b.toml") +
    " mesh.dp=1 mesh.tp=1 mesh.pp=1 mesh.sequence_parallel=false pipeline.schedule=1f1b pipeline.chunks=1 "
    "batch.sequences=2 model.layers=20 --machine h100-sxm";

void expect_no_times(const std::string& text) {
  for (const char* figure : {"tokens/s", "MFU", "$", "TFLOP/s of the model", "a step takes", "device-hours"})
    EXPECT_EQ(text.find(figure), std::string::npos) << "'" << figure << "' in:\n" << text;
}

TEST(DoesNotFit, ThePlanSaysSoAndGivesNoTimes) {
  ScratchPlace place("does-not-fit");
  Outcome text = run_command(fmt::format(
      "plan {} --tokens 1T --html {} --vary devices=1,4 --vary batch.sequences=2 --vary batch.seq=8192 --layouts 0 "
      "--trace {}",
      kTooLarge, place / "p.html", place / "t.json"));
  EXPECT_EQ(text.code, kDoesNotFit) << text.output;
  EXPECT_NE(text.output.find("DOES NOT FIT"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("--trace"), std::string::npos) << text.output;
  EXPECT_FALSE(std::filesystem::exists(place / "t.json"));
  expect_no_times(text.output);
  std::string html = read_file(place / "p.html");
  // Of other plans, which the page has to choose from, some fit.
  size_t others = html.find("<script"), behind = html.rfind("</script>");
  ASSERT_LT(others, behind);
  html.erase(others, behind - others);
  EXPECT_NE(html.find("it does not fit"), std::string::npos);
  for (const char* figure : {"tokens/s", "MFU", " days\"", "simulated", "The whole run"})
    EXPECT_EQ(html.find(figure), std::string::npos) << figure;
}

TEST(DoesNotFit, JsonHasNullForEveryTime) {
  Outcome outcome = run_command(fmt::format("plan {} --tokens 1T --json", kTooLarge));
  EXPECT_EQ(outcome.code, kDoesNotFit) << outcome.output;
  nlohmann::json json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json["memory"]["fits"], false);
  EXPECT_TRUE(json.contains("step") && json["step"].is_null());
  EXPECT_TRUE(json.contains("run") && json["run"].is_null());
  EXPECT_EQ(json["machine"], "h100-sxm");
}

TEST(DoesNotFit, ASearchThatFindsNothing) {
  Outcome outcome = run_command(fmt::format("search {} --devices 1", kTooLarge));
  EXPECT_EQ(outcome.code, kDoesNotFit) << outcome.output;
  EXPECT_NE(outcome.output.find("the smallest needs"), std::string::npos) << outcome.output;
  expect_no_times(outcome.output);
}

TEST(DoesNotFit, Serving) {
  std::string serve =
      config_path("plan/llama3-70b.toml") + " mesh.tp=1 mesh.dp=256 --machine h100-sxm mesh.sequence_parallel=false";
  Outcome text = run_command("plan-serving " + serve), json = run_command("plan-serving " + serve + " --json");
  EXPECT_EQ(text.code, kDoesNotFit) << text.output;
  EXPECT_NE(text.output.find("DOES NOT FIT"), std::string::npos) << text.output;
  expect_no_times(text.output);
  EXPECT_EQ(json.code, kDoesNotFit);
  nlohmann::json parsed = nlohmann::json::parse(json.output);
  EXPECT_EQ(parsed["fits"], false);
  EXPECT_TRUE(parsed["batches"].empty());
}

}  // namespace
}  // namespace sextant
