// The padding row of the embedding: padding_idx of torch.nn.Embedding, with a head of its own and with a tied one.
#include <gtest/gtest.h>

#include <algorithm>

#include "model_results.h"

namespace sextant {
namespace {

constexpr int64_t kVocab = 97, kPadding = 5;

class Model {
 public:
  explicit Model(const ModelSpec& spec)
      : executor_(make_cpu_executor(1)),
        program_(lower(build_model(spec, {.batch = 1, .seq = 8}, single_rank_mesh()), executor_->target(),
                       {.train = Optimizer{}})),
        arena_(executor_->allocate(program_.arena_bytes)),
        bound_(executor_->bind(program_, *arena_)) {
    initialize_weights(*bound_, 3);
    if (program_.find("head.weight")) write("head.weight", read("embed.weight"));
    std::vector<int32_t> tokens{1, kPadding, 2, kPadding, 3, 1, kPadding, 9},
        targets{2, 3, kPadding, 4, 1, kPadding, 9, 8};
    bound_->write(program_.at("tokens"), std::as_bytes(std::span(tokens)));
    bound_->write(program_.at("targets"), std::as_bytes(std::span(targets)));
    write_value(*bound_, program_.at("loss_scale"), 0.125f);
    bound_->run({.region = RegionKind::forward});
    bound_->run({.region = RegionKind::backward});
  }
  std::vector<float> read(std::string_view path) const {
    const Value& value = program_.at(path);
    std::vector<float> x(static_cast<size_t>(value.shape.count()));
    bound_->read(value, std::as_writable_bytes(std::span(x)));
    return x;
  }
  void write(std::string_view path, const std::vector<float>& x) {
    bound_->write(program_.at(path), std::as_bytes(std::span(x)));
  }

 private:
  std::unique_ptr<Executor> executor_;
  Program program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> bound_;
};

std::vector<float> row_of(const std::vector<float>& x, int64_t row) {
  auto width = static_cast<int64_t>(x.size()) / kVocab;
  return {x.begin() + row * width, x.begin() + (row + 1) * width};
}

TEST(Padding, RowGetsNoGradientFromTheInput) {
  ModelSpec spec{.architecture = "llama",
                 .layers = 1,
                 .hidden = 16,
                 .heads = 2,
                 .kv_heads = 2,
                 .head_dim = 8,
                 .ffn = 24,
                 .vocab = kVocab,
                 .max_seq = 8,
                 .init_std = 0.2};
  std::vector<float> plain = Model(spec).read("grad.embed.weight"), head = Model(spec).read("grad.head.weight");
  spec.padding_token = kPadding;
  std::vector<float> padded = Model(spec).read("grad.embed.weight");
  EXPECT_NE(row_of(plain, kPadding), std::vector<float>(16));
  EXPECT_EQ(row_of(padded, kPadding), std::vector<float>(16));
  for (int64_t row = 0; row < kVocab; ++row)
    if (row != kPadding) {
      EXPECT_EQ(row_of(padded, row), row_of(plain, row)) << row;
    }
  // Tied, the row still gets the gradient of the head.
  spec.tied_head = true;
  std::vector<float> tied = row_of(Model(spec).read("grad.embed.weight"), kPadding), expected = row_of(head, kPadding);
  for (size_t i = 0; i < tied.size(); ++i) EXPECT_NEAR(tied[i], expected[i], 1e-7f);
  EXPECT_NE(tied, std::vector<float>(16));
}

}  // namespace
}  // namespace sextant
