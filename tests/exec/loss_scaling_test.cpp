// Dynamic loss scaling step by step against torch.amp.GradScaler with planted overflows
// (tests/peers/make_grad_scaler_fixture.py), and what the update is given.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "base/files.h"
#include "checkout.h"
#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr double kOverflow = std::numeric_limits<double>::infinity();

std::vector<Numbers> clip_scaled(const Attrs& attrs, double squares, double scale, double good_steps) {
  return run_kernel({.def = ops::clip_scaled,
                     .attrs = attrs,
                     .types = {f64({}), f64({}), i32({})},
                     .inputs = {{squares}, {scale}, {good_steps}},
                     .real = DType::f32});
}

Attrs scaling_attrs(double initial, double growth, double backoff, int64_t interval, double minimum = 1e-30) {
  return {{"clip", 0.0},        {"initial", initial},          {"growth_factor", growth},
          {"backoff", backoff}, {"growth_interval", interval}, {"minimum", minimum}};
}

TEST(LossScaling, FollowsGradScalerStepByStep) {
  std::istringstream lines(
      read_file(std::filesystem::path(checkout::kSources) / "tests/fixtures/grad_scaler/torch.csv"));
  std::string line;
  std::getline(lines, line);  // the version
  std::getline(lines, line);  // names of columns
  int compared = 0, overflows = 0, setting = -1;
  double scale = 0, good_steps = 0;
  while (std::getline(lines, line)) {
    std::vector<double> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(std::stod(field));
    if (static_cast<int>(row[0]) != setting) {  // a new run: fresh memory
      setting = static_cast<int>(row[0]);
      scale = good_steps = 0;
    }
    Attrs attrs = scaling_attrs(row[1], row[2], row[3], static_cast<int64_t>(row[4]));
    std::vector<Numbers> out = clip_scaled(attrs, row[5] != 0 ? kOverflow : 1.0, scale, good_steps);
    scale = out[2][0], good_steps = out[3][0];
    EXPECT_EQ(out[4][0], row[6]) << "line " << compared;
    EXPECT_EQ(scale, row[7]) << "line " << compared;
    EXPECT_EQ(good_steps, row[8]) << "line " << compared;
    EXPECT_EQ(out[1][0] == 0, row[5] != 0) << "an overflow, and no other step, is skipped";
    overflows += row[5] != 0;
    ++compared;
  }
  EXPECT_EQ(compared, 120);
  EXPECT_GT(overflows, 10);
}

TEST(LossScaling, UndoesTheScaleBeforeNormAndClip) {
  Attrs attrs = scaling_attrs(8, 2, 0.5, 100);
  EXPECT_EQ(clip_scaled(attrs, 64 * 25, 8, 0)[0], Numbers{5});  // the norm of the unscaled gradient
  EXPECT_EQ(clip_scaled(attrs, 64 * 25, 8, 0)[1], Numbers{0.125});
  attrs.set("clip", 1.0);
  EXPECT_FLOAT_EQ(static_cast<float>(clip_scaled(attrs, 64 * 25, 8, 0)[1][0]), 0.2f / 8);
  EXPECT_EQ(clip_scaled(attrs, 64 * 0.25, 8, 0)[1], Numbers{0.125});
}

TEST(LossScaling, DoesNotFallBelowTheMinimum) {
  Attrs attrs = scaling_attrs(8, 2, 0.5, 100, 3);
  EXPECT_EQ(clip_scaled(attrs, kOverflow, 8, 5)[2], Numbers{4});
  EXPECT_EQ(clip_scaled(attrs, kOverflow, 4, 5)[2], Numbers{3});
  EXPECT_EQ(clip_scaled(attrs, std::nan(""), 3, 5)[2], Numbers{3});
  EXPECT_EQ(clip_scaled(attrs, std::nan(""), 3, 5)[3], Numbers{0});
}

TEST(LossScaling, SeedsAreMultiplied) {
  auto seed = [](double x, double scale) {
    return run_kernel({.def = ops::scale_seed,
                       .attrs = {{"initial", 16.0}},
                       .types = {f64({}), f64({})},
                       .inputs = {{x}, {scale}}})[0][0];
  };
  EXPECT_EQ(seed(0.25, 8), 2);
  EXPECT_EQ(seed(0.25, 0), 4);
}

}  // namespace
}  // namespace sextant
