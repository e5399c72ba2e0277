// Layers behind a model's last in its files are named, never left out in silence.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "checkout.h"
#include "ckpt/model_weights.h"
#include "models/hf_config.h"

namespace sextant {
namespace {

TEST(UnreadLayers, AreNamed) {
  std::filesystem::path directory = std::filesystem::path(checkout::kSources) / "tests/fixtures/models/deepseekv3";
  std::string config = (directory / "config.json").string();
  ModelSpec spec = spec_from_hf_config(read_file(config), config);
  WeightsReader weights(directory);
  EXPECT_EQ(unread_layers(spec, weights), "");
  int64_t in_last = 0;
  for (const std::string& name : weights.names()) in_last += name.starts_with("model.layers.2.") ? 1 : 0;
  spec.layers = 2;
  EXPECT_EQ(unread_layers(spec, weights),
            fmt::format("model.layers.2 and later hold {} tensors that are not read: the model has 2 layers; "
                        "model.mtp.depths reads those of multi-token prediction",
                        in_last));
}

}  // namespace
}  // namespace sextant
