// Times every CPU kernel at the shapes of a small Llama (hidden 384, 6 heads of 64, ffn 1024, vocabulary 8192, 8
// sequences of 256 tokens) in f32: the best and the median of several runs, as GFLOP/s and as GB/s by the op's own
// cost. Usage: bench_kernels [threads=0 (all cores)] [repeats=20] [only ops whose name contains this]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/gemm.h"
#include "ops/shapes.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

struct Load {
  const OpDef* def;
  std::string name;
  TensorTypes inputs;
  Attrs attrs;
  int64_t integers_below = 1;
};

TensorType f32(GlobalShape shape) {
  return {DType::f32, std::move(shape)};
}

std::vector<Load> loads() {
  constexpr int64_t kBatch = 8, kLength = 256, kHidden = 384, kHeads = 6, kDim = 64, kQkv = 3 * 384, kFfn = 1024,
                    kVocabulary = 8192;
  auto rows = [](int64_t width) { return f32({kBatch, kLength, width}); };
  TensorType h = rows(kHidden), w = f32({kHidden}), row = f32({kBatch, kLength}), tokens = i32({kBatch, kLength});
  TensorType lse = f32({kBatch, kHeads, kLength}), embedding = f32({kVocabulary, kHidden}), scalar = f32({});
  Attrs heads{{"heads", kHeads}, {"kv_heads", kHeads}, {"head_dim", kDim}};
  Attrs turned = heads;
  turned.set("theta", 10000.0);
  Attrs adam{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}};
  std::vector<Load> list;
  struct Linear {
    const char* name;
    int64_t in, out;
  };
  for (Linear l : {Linear{"qkv", kHidden, kQkv},
                   {"proj", kHidden, kHidden},
                   {"gate_up", kHidden, 2 * kFfn},
                   {"down", kFfn, kHidden}}) {
    list.push_back({&ops::linear, l.name, {rows(l.in), f32({l.out, l.in})}, {}});
    list.push_back({&ops::linear_input_gradient, l.name, {rows(l.out), f32({l.out, l.in})}, {}});
    list.push_back({&ops::linear_weight_gradient, l.name, {rows(l.out), rows(l.in)}, {{"accumulate", int64_t{1}}}});
  }
  for (Load& load : std::vector<Load>{
           {&ops::linear, "one_row", {f32({1, 1, kHidden}), f32({2 * kFfn, kHidden})}, {}},
           {&ops::linear, "head_one_row", {f32({1, 1, kHidden}), embedding}, {}},
           {&ops::linear_bias_gradient, "", {rows(kQkv)}, {}},
           {&ops::head_loss, "", {h, embedding, tokens}, {{"z_loss", 0.0}}, kVocabulary},
           {&ops::head_loss_backward, "", {h, embedding, tokens, scalar}, {{"z_loss", 0.0}}, kVocabulary},
           {&ops::attention, "", {rows(kQkv)}, heads},
           {&ops::attention_backward, "", {h, rows(kQkv), h, lse}, heads},
           {&ops::attention, "long", {f32({1, 2048, kQkv})}, heads},
           {&ops::attention_backward,
            "long",
            {f32({1, 2048, kHidden}), f32({1, 2048, kQkv}), f32({1, 2048, kHidden}), f32({1, kHeads, 2048})},
            heads},
           {&ops::attention_cached,
            "decode",
            {f32({1, 1, kQkv}), f32({1, kHeads, 1024, kDim}), f32({1, kHeads, 1024, kDim}), i32({})},
            heads,
            1024},
           {&ops::rope, "", {rows(kQkv)}, turned},
           {&ops::rms_norm, "", {h, w}, {{"eps", 1e-5}}},
           {&ops::rms_norm_backward, "", {h, h, w, row}, {}},
           {&ops::layer_norm, "", {h, w, w}, {{"eps", 1e-5}}},
           {&ops::layer_norm_backward, "", {h, h, w, row, row}, {}},
           {&ops::swiglu, "", {rows(2 * kFfn)}, {}},
           {&ops::swiglu_backward, "", {rows(kFfn), rows(2 * kFfn)}, {}},
           {&ops::gelu, "", {rows(4 * kHidden)}, {}},
           {&ops::gelu_backward, "", {rows(4 * kHidden), rows(4 * kHidden)}, {}},
           {&ops::add, "", {h, h}, {}},
           {&ops::accumulate, "", {embedding, embedding}, {}},
           {&ops::embedding, "", {tokens, embedding}, {}, kVocabulary},
           {&ops::embedding_backward, "", {h, tokens, embedding}, {}, kVocabulary},
           {&ops::position_embedding, "", {h, f32({kLength, kHidden})}, {}},
           {&ops::sum_squares, "", {embedding}, {}},
           {&ops::adamw, "", {embedding, embedding, embedding, embedding, scalar, scalar, i32({})}, adam},
       })
    list.push_back(std::move(load));
  return list;
}

struct Buffers {
  std::vector<std::unique_ptr<std::byte[]>> owned;

  std::byte* allocate(int64_t bytes) {
    owned.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes) + 64));
    auto address = reinterpret_cast<uintptr_t>(owned.back().get());
    return owned.back().get() + (64 - address % 64) % 64;
  }
  Tensor tensor(const TensorType& type) {
    auto dims = type.shape.dims();
    return {allocate(type.bytes().n), type.dtype, LocalShape(std::vector<int64_t>(dims.begin(), dims.end()))};
  }
};

void draw(const Tensor& tensor, int64_t integers_below, uint64_t stream) {
  Random random(1, "bench", stream);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t at = static_cast<uint64_t>(i);
    if (tensor.dtype == DType::i32)
      tensor.as<int32_t>()[i] = static_cast<int32_t>(random.below(at, static_cast<uint64_t>(integers_below)));
    else
      tensor.as<float>()[i] = static_cast<float>(random.uniform(at));
  }
}

void measure(const Load& load, ThreadTeam& team, int repeats) {
  Buffers buffers;
  std::vector<Tensor> in, out;
  for (const TensorType& type : load.inputs) {
    in.push_back(buffers.tensor(type));
    draw(in.back(), load.integers_below, in.size());
  }
  TensorTypes types = infer_types(*load.def, load.attrs, load.inputs);
  for (size_t i = 0; i < types.size(); ++i) {
    out.push_back(buffers.tensor(types[i]));
    for (const Alias& alias : load.def->alias)
      if (alias.rule == Alias::Rule::must && alias.output == static_cast<int>(i))
        out.back().data = in[static_cast<size_t>(alias.input)].data;
  }
  const CpuKernel& kernel = cpu_kernel(*load.def);
  std::byte* workspace = buffers.allocate(
      cpu_kernel_needs().workspace(*load.def, {load.attrs, types_of(in), types_of(out), team.size()}).n);
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {  // the first run warms up
    auto start = std::chrono::steady_clock::now();
    kernel.run({in, out, load.attrs, workspace, team});
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i > 0) seconds.push_back(taken.count());
  }
  std::sort(seconds.begin(), seconds.end());
  double best = seconds.front(), median = seconds[seconds.size() / 2];
  Cost cost = load.def->cost(load.attrs, load.inputs, types);
  double bytes = static_cast<double>((cost.read + cost.written).n);
  fmt::print("{:<24} {:<13} best {:>8.3f} ms  median {:>8.3f} ms  {:>7.1f} GFLOP/s  {:>6.1f} GB/s\n", load.def->name,
             load.name, best * 1e3, median * 1e3, cost.flops.n / best * 1e-9, bytes / best * 1e-9);
}

}  // namespace
}  // namespace sextant

int main(int argc, char** argv) {
  using namespace sextant;
  int threads = argc > 1 ? std::atoi(argv[1]) : 0, repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 20;
  std::string only = argc > 3 ? argv[3] : "";
  cpu::use_single_threaded_blas();
  ThreadTeam team(threads);
  fmt::print("{} threads, best and median of {} runs; rates by the best\n", team.size(), repeats);
  for (const Load& load : loads())
    if (load.def->name.find(only) != std::string_view::npos) measure(load, team, repeats);
}
