// The exported page: one file with its data, safe whatever names and texts hold. Curves in a terminal.
#include "watch/page.h"

#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "run_files.h"
#include "watch/run_json.h"
#include "watch/text_plot.h"

namespace sextant {
namespace {

TEST(ExportedPage, HoldsTheRunsAndNeedsNothingElse) {
  RunFiles files("export");
  for (int step = 1; step <= 3000; ++step)
    files.append("a/metrics.jsonl", metrics_line(step, step == 1234 ? 99 : 2, ",\"model_flops\":5e9"));
  files.write("a/events.jsonl",
              R"({"time":"t","event":"note","step":7,"text":"</script><script>alert(1)</script><!--"})"
              "\n");
  RunSet runs({files.path()});
  runs.read_all();
  std::string page = exported_page(export_json(runs, 100, std::time(nullptr)));
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  for (const char* outside : {"https://", "src=", "NONCE", "/* DATA */", "/* SCRIPT */", "/* STYLE */"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  size_t begin = page.find("application/json\">") + 18;
  nlohmann::json data = nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const auto& loss = data.at("series").at("1").at("loss");
  EXPECT_LE(loss.at("step").size(), 201u);
  for (const char* axis : {"tokens", "seconds", "flops", "y"}) EXPECT_EQ(loss.at(axis).size(), loss.at("step").size());
  bool spike = false;
  for (size_t i = 0; i < loss.at("y").size(); ++i)
    if (loss["y"][i] == 99) {
      spike = true;
      EXPECT_EQ(loss["step"][i], 1234);
      EXPECT_EQ(loss["tokens"][i], 123400);
      EXPECT_EQ(loss["seconds"][i], 617);
      EXPECT_EQ(loss["flops"][i], 617e10);
    }
  EXPECT_TRUE(spike);
  EXPECT_EQ(data.at("events").at(0).at("text"), "</script><script>alert(1)</script><!--");
}

SeriesPoints rising_points() {
  SeriesPoints points;
  for (int i = 0; i <= 10; ++i) points.add(i, static_cast<float>(i));
  return points;
}

TEST(TextPlotTest, DrawsARisingLineFromTheLowerLeftToTheUpperRight) {
  std::string text = text_plot({{rising_points(), "a"}},
                               {.title = "loss", .x_name = "step", .width = 42, .height = 10, .braille = false});
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[0], "loss");
  size_t before = 100;
  for (size_t row = 1; row <= 10; ++row) {
    size_t star = lines[row].find('*');
    ASSERT_NE(star, std::string::npos) << text;
    EXPECT_LT(star, before);
    before = star;
    EXPECT_LE(lines[row].size(), 42u);
  }
  EXPECT_NE(lines[1].find("10 |"), std::string::npos);
  EXPECT_NE(lines[10].find("0 |"), std::string::npos);
  EXPECT_NE(lines[11].find("step 0"), std::string::npos);
}

TEST(TextPlotTest, BrailleHasFourRowsALine) {
  SeriesPoints flat;
  flat.add(0, 1);
  flat.add(1, 1);
  EXPECT_NE(text_plot({{flat, "a"}}, {.title = "t", .x_name = "step", .width = 40, .height = 1}).find("⠤"),
            std::string::npos);
  EXPECT_NE(text_plot({}, {.title = "t"}).find("no values"), std::string::npos);
}

}  // namespace
}  // namespace sextant
