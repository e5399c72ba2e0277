// An installed program finds its files beside itself, wherever the tree was moved to.
#include <gtest/gtest.h>

#include <cstdlib>

#include "app/command.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

Outcome run_installed(const fs::path& prefix, const std::string& arguments) {
  return run_command("--version > /dev/null; cd /; " + (prefix / "bin" / "sextant").string() + " " + arguments);
}

TEST(Install, TheTreeMayBeMoved) {
  ScratchPlace place("install");
  fs::path build = fs::path(checkout::kBinary).parent_path(), first = place.path() / "first",
           moved = place.path() / "moved";
  std::string install = fmt::format("cmake --install {} --prefix {} > /dev/null 2>&1", build.string(), first.string());
  ASSERT_EQ(std::system(install.c_str()), 0) << install;
  fs::rename(first, moved);
  Outcome configs = run_installed(moved, "list configs");
  ASSERT_EQ(configs.code, 0) << configs.output;
  EXPECT_EQ(configs.output.find(checkout::kSources), std::string::npos) << configs.output;
  fs::path tiny = moved / "share" / "sextant" / "configs" / "tiny-llama.toml";
  EXPECT_NE(configs.output.find(tiny.string()), std::string::npos) << configs.output;
  Outcome plan = run_installed(moved, "plan " + tiny.string() + " --machine h200 --software megatron-2021");
  EXPECT_EQ(plan.code, 0) << plan.output;
  EXPECT_GT(fs::file_size(moved / "share" / "sextant" / "data" / "published" / "published_moe_runs.csv"), 10000u);
  // Published runs are looked for there, too: with one small table in their place, the validation is of that one.
  fs::path published = moved / "share" / "sextant" / "data" / "published";
  for (const char* table : {"published_runs.csv", "published_moe_runs.csv"}) fs::remove(published / table);
  fs::copy_file(fs::path(checkout::kSources) / "tests/fuzz/seeds/published.csv", published / "few.csv");
  Outcome few = run_installed(moved, "validate --json");
  EXPECT_EQ(few.code, 0) << few.output;
  EXPECT_NE(few.output.find("\"file\": \"few.csv\""), std::string::npos) << few.output;
  fs::remove(published / "few.csv");
  Outcome none = run_installed(moved, "validate");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.output.find("no table of published runs"), std::string::npos) << none.output;
  // Nothing of the source tree is read: a machine that is taken away is missing.
  fs::remove(moved / "share" / "sextant" / "machines" / "h200.toml");
  Outcome missing = run_installed(moved, "plan " + tiny.string() + " --machine h200");
  EXPECT_EQ(missing.code, 2) << missing.output;
  for (const char* file :
       {"doc/sextant/README.md", "sextant/config.schema.json", "man/man1/sextant.1", "man/man1/sextant-bench-gemm.1",
        "bash-completion/completions/sextant", "zsh/site-functions/_sextant", "fish/vendor_completions.d/sextant.fish"})
    EXPECT_GT(fs::file_size(moved / "share" / file), 100u) << file;
}

}  // namespace
}  // namespace sextant
