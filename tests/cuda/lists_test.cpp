// Kernels that take a whole list of tensors in one launch, as the update of a model does: against the CPU's kernels,
// tensor by tensor. And AdamW's master copy in two halves, which only exists on the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/halves.h"
#include "base/rng.h"
#include "cuda/device_runner.h"
#include "exec/cuda/runtime/check.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

// Sizes around those of a thread, a vector, a block and several blocks; more tensors than one launch takes.
std::vector<int64_t> mixed_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 25; ++i)
    for (int64_t n : {i + 1, 2048 + i * 8, 16384 - i, 40000 + 977 * i}) sizes.push_back(n);
  return sizes;
}

enum class Scratch {
  own,     // every call has its own
  shared,  // all have the same, as when memory was planned for one op after the other
};

// Tensors in device memory, and the calls on them.
struct List {
  std::vector<GuardedBytes> buffers;
  std::vector<std::vector<Tensor>> in, out;
  std::vector<Attrs> attrs;

  Tensor add(DType dtype, const LocalShape& shape, const Numbers& numbers) {
    buffers.emplace_back(shape.count() * size_of(dtype));
    Tensor tensor{buffers.back().data(), dtype, shape};
    if (!numbers.empty()) write_to_device(tensor, numbers);
    return tensor;
  }

  int64_t scratch_of(const OpDef& def, size_t i) const {
    return planned_scratch(def, attrs[i], in[i], out[i], Determinism::fast).n;
  }

  void run(const OpDef& def, CudaDevice& device, Scratch scratch = Scratch::own) {
    std::vector<CudaCall> calls;
    int64_t most = 0;
    for (size_t i = 0; i < in.size(); ++i) most = std::max(most, scratch_of(def, i));
    for (size_t i = 0; i < in.size(); ++i) {
      if (scratch == Scratch::own)
        buffers.emplace_back(scratch_of(def, i));
      else if (i == 0)
        buffers.emplace_back(most);
      auto* workspace = static_cast<std::byte*>(buffers.back().data());
      calls.push_back({in[i], out[i], attrs[i], workspace, device, device.stream()});
    }
    cuda_kernel(def).launch_all(calls);
    check_cuda(cudaGetLastError(), "launch");
    check_cuda(cudaStreamSynchronize(device.stream()), "run");
    for (const GuardedBytes& buffer : buffers) EXPECT_TRUE(buffer.end_is_whole()) << "written behind a buffer";
  }
};

Numbers draw(std::string_view purpose, uint64_t stream, int64_t n) {
  Random random(1, purpose, stream);
  Numbers numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(random.normal(i));
  return numbers;
}

class CudaLists : public OnDevice {};

void check_sum_squares(DType dtype, Scratch scratch, CudaDevice& device) {
  List list;
  for (int64_t n : mixed_sizes()) {
    list.in.push_back({list.add(dtype, {n}, draw("x", static_cast<uint64_t>(n), n))});
    list.out.push_back({list.add(DType::f32, {}, {})});
    list.attrs.push_back({});
  }
  list.run(ops::sum_squares, device, scratch);
  for (size_t i = 0; i < list.in.size(); ++i) {
    double exact = 0;
    for (double x : read_from_device(list.in[i][0])) exact += x * x;
    EXPECT_NEAR(read_from_device(list.out[i][0])[0] / exact, 1, 1e-6) << list.in[i][0].count();
  }
}

TEST_F(CudaLists, SumSquares) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (Scratch scratch : {Scratch::own, Scratch::shared}) check_sum_squares(dtype, scratch, device());
}

void check_largest(DType dtype, CudaDevice& device) {
  List list;
  for (int64_t n : mixed_sizes()) {
    list.in.push_back({list.add(dtype, {n}, draw("x", static_cast<uint64_t>(n), n))});
    list.out.push_back({list.add(DType::f32, {}, {})});
    list.attrs.push_back({});
  }
  list.run(ops::absmax, device);
  for (size_t i = 0; i < list.in.size(); ++i) {
    double exact = 0;
    for (double x : read_from_device(list.in[i][0])) exact = std::max(exact, std::abs(x));
    EXPECT_EQ(read_from_device(list.out[i][0])[0], exact) << list.in[i][0].count();
  }
}

TEST_F(CudaLists, LargestMagnitudes) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) check_largest(dtype, device());
}

TEST_F(CudaLists, CopiesOfTensors) {
  List list;
  for (int64_t n : mixed_sizes()) {
    const DType dtype = n % 2 == 0 ? DType::bf16 : DType::f32;
    list.in.push_back({list.add(dtype, {n}, draw("x", static_cast<uint64_t>(n), n))});
    list.out.push_back({list.add(dtype, {n}, {})});
    list.attrs.push_back({});
  }
  list.run(ops::duplicate, device());
  for (size_t i = 0; i < list.in.size(); ++i)
    EXPECT_EQ(read_from_device(list.out[i][0]), read_from_device(list.in[i][0])) << list.in[i][0].count();
}

// Weights in bf16 with their low halves, and in f32; with scratch that is shared, one launch may not do for all.
void check_changes(Scratch scratch, CudaDevice& device) {
  List list;
  for (int64_t n : mixed_sizes()) {
    const DType dtype = n % 2 == 0 ? DType::bf16 : DType::f32;
    std::vector<Tensor> in{list.add(dtype, {n}, draw("before", static_cast<uint64_t>(n), n)),
                           list.add(dtype, {n}, draw("after", static_cast<uint64_t>(n), n))};
    if (dtype == DType::bf16)
      for (int i = 0; i < 2; ++i) in.push_back(list.add(DType::u16, {n}, Numbers(static_cast<size_t>(n), 1000 * i)));
    list.in.push_back(in);
    list.out.push_back({list.add(DType::f32, {3}, {})});
    list.attrs.push_back({});
  }
  list.run(ops::change_statistics, device, scratch);
  for (size_t i = 0; i < list.in.size(); ++i) {
    const Numbers before = read_from_device(list.in[i][0]), after = read_from_device(list.in[i][1]);
    auto low = [&](size_t of, double x) {
      if (list.in[i].size() == 2) return x;
      const auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16);
      return static_cast<double>(from_halves(upper, static_cast<uint16_t>(1000 * of)));
    };
    double changes = 0, squares = 0;
    for (size_t k = 0; k < before.size(); ++k) {
      const double now = low(1, after[k]), change = now - low(0, before[k]);
      changes += change * change;
      squares += now * now;
    }
    const Numbers got = read_from_device(list.out[i][0]);
    EXPECT_EQ(got[0], static_cast<double>(before.size()));
    EXPECT_NEAR(got[1] / changes, 1, 1e-5) << before.size();
    EXPECT_NEAR(got[2] / squares, 1, 1e-5) << before.size();
  }
}

TEST_F(CudaLists, ChangesOfWeights) {
  for (Scratch scratch : {Scratch::own, Scratch::shared}) check_changes(scratch, device());
}

struct Scalars {
  float lr, scale;
  int32_t step;
};

// State of one parameter before the step; weight decay differs from one to the next.
struct Parameter {
  Numbers p, g, m, v;
  Attrs attrs;

  Parameter(size_t index, int64_t n)
      : p(draw("p", index, n)),
        g(draw("g", index, n)),
        m(draw("m", index, n)),
        v(draw("v", index, n)),
        attrs{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", index % 2 == 0 ? 0.1 : 0.0}} {
    for (double& x : v) x = std::abs(x);
  }

  std::vector<Numbers> stepped(const Scalars& scalars) const {
    auto n = static_cast<int64_t>(p.size());
    TensorType x = f64({n});
    return run_kernel({.def = ops::adamw,
                       .attrs = attrs,
                       .types = {x, x, x, x, f64({}), f64({}), i32({})},
                       .inputs = {p, g, m, v, {scalars.lr}, {scalars.scale}, {static_cast<double>(scalars.step)}}});
  }
};

enum class Master { whole, halves };

// The parameters as operands of one list. In halves, p is the rounded upper half and `low` the rest.
List list_of(const std::vector<Parameter>& parameters, const Scalars& scalars, Master master) {
  List list;
  Tensor lr = list.add(DType::f32, {}, {scalars.lr}), scale = list.add(DType::f32, {}, {scalars.scale});
  Tensor step = list.add(DType::i32, {}, {static_cast<double>(scalars.step)});
  for (const Parameter& parameter : parameters) {
    LocalShape shape{static_cast<int64_t>(parameter.p.size())};
    Numbers p = parameter.p, low = parameter.p;
    for (size_t i = 0; master == Master::halves && i < p.size(); ++i) {
      auto whole = static_cast<float>(parameter.p[i]);
      p[i] = static_cast<double>(from_halves(upper_half(whole), 0));
      low[i] = low_half(whole);
    }
    Tensor weights = list.add(master == Master::halves ? DType::bf16 : DType::f32, shape, p);
    Tensor g = list.add(DType::f32, shape, parameter.g), m = list.add(DType::f32, shape, parameter.m);
    Tensor v = list.add(DType::f32, shape, parameter.v);
    list.in.push_back({weights, g, m, v, lr, scale, step});
    list.out.push_back({weights, m, v});
    if (master == Master::halves) {
      Tensor lows = list.add(DType::u16, shape, low);
      list.in.back().push_back(lows);
      list.out.back().push_back(lows);
    }
    list.attrs.push_back(parameter.attrs);
  }
  return list;
}

Numbers whole_parameters(const std::vector<Tensor>& out) {
  Numbers p = read_from_device(out[0]);
  if (out.size() < 4) return p;
  Numbers low = read_from_device(out[3]);
  for (size_t i = 0; i < p.size(); ++i) {
    auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(p[i])) >> 16);
    p[i] = static_cast<double>(from_halves(upper, static_cast<uint16_t>(low[i])));
  }
  return p;
}

std::vector<Parameter> mixed_parameters() {
  std::vector<Parameter> parameters;
  for (int64_t n : mixed_sizes()) parameters.emplace_back(parameters.size(), n);
  return parameters;
}

TEST_F(CudaLists, AdamwStepsEveryParameter) {
  Scalars scalars{.lr = 1e-2f, .scale = 0.5f, .step = 3};
  std::vector<Parameter> parameters = mixed_parameters();
  for (Master master : {Master::whole, Master::halves}) {
    List list = list_of(parameters, scalars, master);
    list.run(ops::adamw, device());
    for (size_t i = 0; i < parameters.size(); ++i) {
      std::vector<Numbers> exact = parameters[i].stepped(scalars);
      EXPECT_LT(relative_error(whole_parameters(list.out[i]), exact[0]), 1e-6) << "p of " << exact[0].size();
      EXPECT_LT(relative_error(read_from_device(list.out[i][1]), exact[1]), 1e-6) << "m of " << exact[0].size();
      EXPECT_LT(relative_error(read_from_device(list.out[i][2]), exact[2]), 1e-6) << "v of " << exact[0].size();
    }
  }
}

TEST_F(CudaLists, AdamwLeavesEverythingWhenTheScaleIsZero) {
  std::vector<Parameter> parameters = mixed_parameters();
  for (Master master : {Master::whole, Master::halves}) {
    List list = list_of(parameters, {.lr = 1e-2f, .scale = 0, .step = 3}, master);
    list.run(ops::adamw, device());
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(whole_parameters(list.out[i]), parameters[i].p);
      EXPECT_EQ(read_from_device(list.out[i][1]), parameters[i].m);
      EXPECT_EQ(read_from_device(list.out[i][2]), parameters[i].v);
    }
  }
}

// Needs no GPU: memory is planned by the target's word.
TEST(KernelLists, AreWhatTheTargetGroups) {
  for (const OpDef* def : all_ops())
    EXPECT_EQ(cuda_kernel(*def).launch_all != nullptr, cuda_kernel_needs().grouping(*def) == Grouping::together)
        << def->name;
}

}  // namespace
}  // namespace sextant
