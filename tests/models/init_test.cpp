// How weights begin: what is added to the residual stream is smaller by the root of how often that happens.
#include <gtest/gtest.h>

#include "models/model.h"

namespace sextant {
namespace {

TEST(Init, ResidualOutputsAreSmallerByTheRootOfTwiceTheLayers) {
  for (const char* architecture : {"llama", "gpt2"}) {
    ModelSpec spec{.architecture = architecture,
                   .layers = 8,
                   .hidden = 64,
                   .heads = 4,
                   .kv_heads = 4,
                   .head_dim = 16,
                   .ffn = 128,
                   .vocab = 256,
                   .max_seq = 32,
                   .init_std = 0.02};
    Graph graph = build_model(spec, {.batch = 1, .seq = 32}, single_rank_mesh());
    int residual = 0, plain = 0;
    for (const Value& value : graph.values) {
      if (value.kind != ValueKind::parameter || value.init.kind != Init::Kind::normal) continue;
      bool adds = value.path.ends_with("attn.out.weight") || value.path.ends_with("mlp.down.weight");
      ++(adds ? residual : plain);
      EXPECT_DOUBLE_EQ(value.init.std, adds ? 0.02 / 4 : 0.02) << architecture << " " << value.path;  // √(2·8) = 4
    }
    EXPECT_EQ(residual, 2 * 8);
    EXPECT_GT(plain, 2 * 8);
  }
}

}  // namespace
}  // namespace sextant
