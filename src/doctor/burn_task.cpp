#include "doctor/burn_task.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "ops/ops.h"
#include "passes/hops.h"
#include "passes/lower.h"

namespace sextant {

namespace {

using Reals = std::vector<float>;

// On a processor a round is to be short; a GPU has to be kept busy between looks at what it made.
struct Sizes {
  int64_t tokens, width, sequence, heads, head_dim, summed;
  int runs;  // between two looks
};
constexpr Sizes kOnProcessor{192, 256, 128, 4, 32, 1 << 15, 1};
constexpr Sizes kOnDevice{4096, 4096, 2048, 16, 128, 1 << 22, 32};

Sizes sizes_for(const Target& target) {
  return target.name == "cpu" ? kOnProcessor : kOnDevice;
}

// Whole numbers of either sign: short enough that products and their sums are exact in every format used.
constexpr int64_t kLargestFactor = 31, kLargestTerm = 1000;

// A cheap generator: a burn draws millions of numbers a second, and only wants them spread.
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Eight bytes at a time: a burn looks at gigabytes.
uint64_t hash_words(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t hash = seed ^ bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    hash = std::rotl((hash ^ word) * 0x9E3779B97F4A7C15, 29);
  }
  return hash;
}

Reals draw_whole(uint64_t key, int64_t count, int64_t largest) {
  Reals numbers(static_cast<size_t>(count));
  for (float& x : numbers)
    x = static_cast<float>(static_cast<int64_t>(next(key) % static_cast<uint64_t>(2 * largest + 1)) - largest);
  return numbers;
}

Reals draw_real(uint64_t key, int64_t count) {
  Reals numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(static_cast<double>(next(key) >> 11) * 0x1p-52 - 1);
  return numbers;
}

// One axis with all ranks.
constexpr AxisDef kAllRanks{.name = "ranks", .role = AxisRole::data};

// A Graph whose values lie whole on every rank unless told otherwise, lowered and bound.
class BoundGraph {
 public:
  BoundGraph(std::string name, int ranks)
      : graph_{.name = std::move(name), .mesh = {{{kAllRanks, ranks}}}, .values = {}, .ops = {}} {}

  // Inputs are kept like weights, so that the Program can run again on the same ones.
  ValueId input(const std::string& path, DType dtype, GlobalShape shape, AxisState state = kInvariant) {
    return graph_.add({.path = path,
                       .kind = ValueKind::parameter,
                       .dtype = dtype,
                       .shape = std::move(shape),
                       .layout = {.states = {state}}});
  }

  std::vector<ValueId> op(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs, const std::string& path) {
    Op made = make_op(graph_, def, std::move(inputs), std::move(attrs), path);
    for (ValueId id : made.outputs) graph_[id].layout = invariant_layout(graph_.mesh);
    graph_.ops.push_back(made);
    return made.outputs;
  }

  ValueId move(ValueId value, AxisState to, const std::string& path) {
    for (Op& hop : make_hops(graph_, value, {.states = {to}}, path)) graph_.ops.push_back(std::move(hop));
    return graph_.ops.empty() ? value : graph_.ops.back().outputs[0];
  }

  void output(ValueId value, const std::string& path) {
    graph_[value].path = path;
    graph_[value].kind = ValueKind::fetch;
  }

  void bind(Executor& executor) {
    program_ = lower(std::move(graph_), executor.target(), {});
    arena_ = executor.allocate(program_.arena_bytes);
    bound_ = executor.bind(program_, *arena_);
  }

  void write(const std::string& path, const Reals& numbers) {
    const Value& value = program_.at(path);
    if (value.dtype == DType::f32) return bound_->write(value, std::as_bytes(std::span(numbers)));
    std::vector<uint16_t> halves(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) halves[i] = bf16_bits(numbers[i]);
    bound_->write(value, std::as_bytes(std::span(halves)));
  }

  void run(int times) {
    for (int i = 0; i < times; ++i) run_schedule(*bound_);
  }

  // The elements, and their bytes into the digest.
  Reals read(const std::string& path, Digest& digest) const {
    const Value& value = program_.at(path);
    std::vector<std::byte> bytes(static_cast<size_t>(value.local_bytes().n));
    bound_->read(value, bytes);
    digest.bits = hash_words(bytes, digest.bits);
    Reals numbers(static_cast<size_t>(value.local.count()));
    if (value.dtype == DType::f32) {
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
      return numbers;
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      numbers[i] = bf16_value(half);
    }
    return numbers;
  }

 private:
  Graph graph_;
  Program program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> bound_;
};

void project(const Reals& numbers, Digest& digest) {
  uint64_t state = 7;
  for (float x : numbers) {
    uint64_t signs = next(state);
    for (int j = 0; j < kProjections; ++j) digest.projections[static_cast<size_t>(j)] += signs >> j & 1 ? x : -x;
    digest.size += static_cast<double>(x) * x;
  }
}

// y = x·wᵀ and both its gradients. Of dw = dyᵀ·x, which is kept in f32, the sum of each column is known from the inputs
// alone, in whole numbers (Huang and Abraham 1984): a wrong element makes one of them wrong on any device.
class Gemms final : public BurnTask {
 public:
  Gemms(Executor& executor, int ranks) : sizes_(sizes_for(executor.target())), graph_("burn.gemms", ranks) {
    DType dtype = executor.target().computes_in.front();
    int64_t t = sizes_.tokens, n = sizes_.width;
    ValueId x = graph_.input("x", dtype, {1, t, n}), w = graph_.input("w", dtype, {n, n}),
            dy = graph_.input("dy", dtype, {1, t, n});
    graph_.output(graph_.op(ops::linear, {x, w}, {}, "linear")[0], "y");
    graph_.output(graph_.op(ops::linear_input_gradient, {dy, w}, {}, "linear.dx")[0], "dx");
    graph_.output(graph_.op(ops::linear_weight_gradient, {dy, x}, {}, "linear.dw")[0], "dw");
    graph_.bind(executor);
  }

  std::string name() const override { return "GEMMs"; }
  Between between() const override { return Between::exact; }

  void fill(uint64_t seed) override {
    int64_t t = sizes_.tokens, n = sizes_.width;
    Reals x = draw_whole(seed + 1, t * n, kLargestFactor), dy = draw_whole(seed + 3, t * n, kLargestFactor);
    graph_.write("x", x);
    graph_.write("w", draw_whole(seed + 2, n * n, kLargestFactor));
    graph_.write("dy", dy);
    column_sums_.assign(static_cast<size_t>(n), 0);
    for (int64_t row = 0; row < t; ++row) {
      int64_t weight = 0;
      for (int64_t o = 0; o < n; ++o) weight += static_cast<int64_t>(dy[static_cast<size_t>(row * n + o)]);
      for (int64_t i = 0; i < n; ++i)
        column_sums_[static_cast<size_t>(i)] += weight * static_cast<int64_t>(x[static_cast<size_t>(row * n + i)]);
    }
  }

  void run() override { graph_.run(sizes_.runs); }

  Digest digest() const override {
    Digest digest;
    graph_.read("y", digest);
    graph_.read("dx", digest);
    Reals dw = graph_.read("dw", digest);
    std::vector<double> sums(column_sums_.size(), 0);
    for (size_t i = 0; i < dw.size(); ++i) sums[i % sums.size()] += static_cast<double>(dw[i]);
    for (size_t i = 0; i < sums.size(); ++i) digest.wrong += sums[i] != static_cast<double>(column_sums_[i]);
    return digest;
  }

 private:
  Sizes sizes_;
  BoundGraph graph_;
  std::vector<int64_t> column_sums_;
};

class Attention final : public BurnTask {
 public:
  Attention(Executor& executor, int ranks) : sizes_(sizes_for(executor.target())), graph_("burn.attention", ranks) {
    DType dtype = executor.target().computes_in.front();
    int64_t s = sizes_.sequence, width = sizes_.heads * sizes_.head_dim;
    Attrs attrs{{"heads", sizes_.heads}, {"kv_heads", sizes_.heads}, {"head_dim", sizes_.head_dim}};
    ValueId qkv = graph_.input("qkv", dtype, {1, s, 3 * width}), dy = graph_.input("dy", dtype, {1, s, width});
    std::vector<ValueId> y = graph_.op(ops::attention, {qkv}, attrs, "attention");
    graph_.output(y[0], "y");
    graph_.output(graph_.op(ops::attention_backward, {dy, qkv, y[0], y[1]}, attrs, "attention.back")[0], "dqkv");
    graph_.bind(executor);
  }

  std::string name() const override { return "attention"; }
  Between between() const override { return Between::rounded; }

  void fill(uint64_t seed) override {
    int64_t width = sizes_.heads * sizes_.head_dim;
    graph_.write("qkv", draw_real(seed + 4, sizes_.sequence * 3 * width));
    graph_.write("dy", draw_real(seed + 5, sizes_.sequence * width));
  }

  void run() override { graph_.run(sizes_.runs); }

  Digest digest() const override {
    Digest digest;
    for (const char* path : {"y", "dqkv"}) {
      Reals numbers = graph_.read(path, digest);
      for (float x : numbers) digest.wrong += !std::isfinite(x);
      project(numbers, digest);
    }
    digest.size = std::sqrt(digest.size);
    return digest;
  }

 private:
  Sizes sizes_;
  BoundGraph graph_;
};

// The sum over ranks twice: by all-reduce, and by reduce-scatter and all-gather. Everyone knows what everyone put in.
class Collectives final : public BurnTask {
 public:
  Collectives(Executor& executor, const RankContext& context, int ranks)
      : context_(context), ranks_(ranks), sizes_(sizes_for(executor.target())), graph_("burn.collectives", ranks) {
    ValueId own = graph_.input("own", DType::f32, {sizes_.summed}, kPartial);
    graph_.output(graph_.move(own, kInvariant, "all_reduce"), "sum");
    graph_.output(graph_.move(graph_.move(own, sharded(0), "reduce_scatter"), kInvariant, "all_gather"), "gathered");
    graph_.bind(executor);
  }

  std::string name() const override { return "collectives"; }
  Between between() const override { return Between::exact; }

  void fill(uint64_t seed) override {
    truth_.assign(static_cast<size_t>(sizes_.summed), 0);
    for (int rank = 0; rank < ranks_; ++rank) {
      Reals part = draw_whole(seed + 6 + static_cast<uint64_t>(rank) * 0x10001, sizes_.summed, kLargestTerm);
      for (size_t i = 0; i < part.size(); ++i) truth_[i] += part[i];
      if (rank == context_.rank) graph_.write("own", part);
    }
  }

  void run() override { graph_.run(1); }

  Digest digest() const override {
    Digest digest;
    for (const char* path : {"sum", "gathered"}) {
      Reals got = graph_.read(path, digest);
      for (size_t i = 0; i < got.size(); ++i) digest.wrong += got[i] != truth_[i];
    }
    return digest;
  }

 private:
  RankContext context_;
  int ranks_;
  Sizes sizes_;
  BoundGraph graph_;
  Reals truth_;
};

}  // namespace

std::unique_ptr<BurnTask> burn_gemms(Executor& executor, int ranks) {
  return std::make_unique<Gemms>(executor, ranks);
}
std::unique_ptr<BurnTask> burn_attention(Executor& executor, int ranks) {
  return std::make_unique<Attention>(executor, ranks);
}
std::unique_ptr<BurnTask> burn_collectives(Executor& executor, const RankContext& context, int ranks) {
  return std::make_unique<Collectives>(executor, context, ranks);
}

}  // namespace sextant
