// A layout that search prints, typed behind the config, and the file that --write writes are what was priced.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command.h"

namespace sextant {
namespace {

struct Figures {
  double seconds = 0;
  int64_t bytes = 0;
  bool operator==(const Figures&) const = default;
};

Figures planned(const std::string& arguments) {
  Outcome outcome = run_command("plan " + arguments + " --machine h100-sxm --json");
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.output;
  if (outcome.code != 0) return {};
  nlohmann::json json = nlohmann::json::parse(outcome.output);
  return {json["step"]["seconds"], json["memory"]["peak_bytes"]};
}

TEST(SearchWrite, TheFirstLayoutRunsAsPriced) {
  ScratchPlace place("search-write");
  std::ofstream(place / "run.toml")
      << "[model]\narchitecture = \"llama\"\nlayers = 4\nhidden = 128\nheads = 4\nvocab = 512\n"
         "[mesh]\npp = 2\n[pipeline]\nschedule = \"interleaved\"\nchunks = 2\nlayers = \"1,1,1,1\"\n"
         "[batch]\nsequences = 4\nseq = 128\n";
  std::string written = place / "best.toml", html = place / "search.html";
  Outcome found =
      run_command(fmt::format("search {} --machine h100-sxm --only pp=2 --tokens 1B --write {} --html {} --json",
                              place / "run.toml", written, html));
  ASSERT_EQ(found.code, 0) << found.output;
  nlohmann::json json = nlohmann::json::parse(found.output);
  ASSERT_FALSE(json["best"].empty());
  for (const nlohmann::json& layout : json["best"])
    EXPECT_EQ(planned(fmt::format("{} {}", place / "run.toml", layout["overrides"].get<std::string>())),
              (Figures{layout["seconds"], layout["peak_bytes"]}))
        << layout["overrides"];
  const nlohmann::json& best = json["best"][0];
  EXPECT_EQ(planned(written), (Figures{best["seconds"], best["peak_bytes"]}));
  EXPECT_GT(best["run"]["days"], 0.0);
  std::string page = read_file(html);
  EXPECT_NE(page.find(best["overrides"].get<std::string>()), std::string::npos);
}

}  // namespace
}  // namespace sextant
