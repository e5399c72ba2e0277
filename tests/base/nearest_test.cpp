#include "base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sextant {
namespace {

TEST(Nearest, Distances) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("hidden", "hiddne"), 1);  // neighbours swapped
  EXPECT_EQ(edit_distance("ca", "abc"), 3);         // no edit inside a swap
}

TEST(Nearest, FindsSlipsOnly) {
  const std::string_view known[] = {"model.hidden", "optimizer.lr", "train.steps"};
  EXPECT_EQ(nearest("model.hiden", known), "model.hidden");
  EXPECT_EQ(nearest("hidden", known), "model.hidden");
  EXPECT_EQ(nearest("train.lr", known), "optimizer.lr");
  EXPECT_EQ(nearest("colour", known), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'x'), known), std::nullopt);
}

TEST(Nearest, HintsNameWhatWasMeant) {
  const std::vector<std::string> machines = {"h100-nvl", "h100-sxm", "h200", "h800", "v100-sxm2"};
  EXPECT_EQ(did_you_mean("h100-sxn", machines), "did you mean h100-sxm?");
  // Nearer by letters is h200; what was typed is a part of others.
  EXPECT_EQ(did_you_mean("h100", machines), "did you mean h100-nvl or h100-sxm?");
  EXPECT_EQ(did_you_mean("v100", machines), "did you mean v100-sxm2?");
  EXPECT_EQ(did_you_mean("toaster", machines), "");
  const std::vector<std::string> keys = {"model.head_dim", "model.heads"};
  EXPECT_EQ(did_you_mean("model.head", keys), "did you mean model.heads?");
  const std::vector<std::string> many = {"run-1", "run-2", "run-3", "run-4", "run-5", "run-6", "run-7"};
  EXPECT_EQ(did_you_mean("run", many), "did you mean one of run-1, run-2, run-3, run-4, run-5, run-6, …?");
}

}  // namespace
}  // namespace sextant
