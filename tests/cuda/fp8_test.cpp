// fp8 on the GPU: codes and scales to the bit as the CPU writes them, the largest magnitude found while a value is
// written, products against f64 sums of what the bytes mean, and whole runs beside the CPU's emulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/fp8.h"
#include "base/rng.h"
#include "cuda/device_runner.h"
#include "exec/cuda/runtime/cuda_executor.h"
#include "ops/shapes.h"
#include "train/mesh_cases.h"
#include "train/scratch_run.h"

namespace sextant {
namespace {

// Over so many octaves, with what is delicate among it.
Numbers spread_numbers(std::string_view name, int64_t count, int octaves) {
  Random random(11, name);
  Numbers x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::ldexp(random.normal(i), static_cast<int>(random.below(i, 1u << 16)) % octaves));
  for (size_t i = 0; i < x.size(); i += 97) x[i] = 0;
  return x;
}

// Numbers as bits, so that a NaN is equal to itself and −0 is not 0.
std::vector<uint64_t> bits_of(const Numbers& numbers) {
  std::vector<uint64_t> bits(numbers.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    double x = std::isnan(numbers[i]) ? std::numeric_limits<double>::quiet_NaN() : numbers[i];
    std::memcpy(&bits[i], &x, sizeof x);
  }
  return bits;
}

class CudaFp8 : public OnDevice {
 protected:
  // The CPU's in f32 of the same rounded numbers.
  void expect_equal_bits(KernelRun run, const std::string& what) {
    run.inputs = rounded_inputs(run);
    std::vector<Numbers> here = run_cuda_kernel(run, device());
    KernelRun cpu = run;
    cpu.real = DType::f32;
    std::vector<Numbers> there = run_kernel(cpu);
    ASSERT_EQ(here.size(), there.size());
    for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(bits_of(here[i]), bits_of(there[i])) << what << ", output " << i;
  }
};

TEST_F(CudaFp8, QuantisesToTheBitAsTheCpuDoes) {
  struct Sizes {
    int64_t sequences, length, width;
  };
  for (auto [b, s, w] : {Sizes{1, 128, 128}, {2, 256, 384}, {3, 80, 176}, {1, 16, 16}, {2, 31, 45}, {5, 7, 3}})
    for (DType real : {DType::bf16, DType::f32})
      for (const char* dtype : {"e4m3", "e5m2"})
        for (bool turned : {false, true}) {
          std::string what = fmt::format("{}x{}x{} {} to {}{}", b, s, w, name_of(real), dtype, turned ? " turned" : "");
          Attrs attrs{{"dtype", dtype}}, tiles{{"dtype", dtype}, {"tile", 128}}, small{{"dtype", dtype}, {"tile", 4}};
          if (turned)
            for (Attrs* each : {&attrs, &tiles, &small}) each->set("transposed", int64_t{1});
          Numbers x = spread_numbers(what, b * s * w, 24);
          double amax = 0;
          for (double number : x) amax = std::max(amax, std::abs(number));
          TensorType value = f64({b, s, w}), matrix = f64({b * s, w});
          expect_equal_bits({ops::absmax, {}, {value}, {x}, real}, "absmax " + what);
          expect_equal_bits({ops::quantize_activation, attrs, {value, f64({})}, {x, {amax}}, real},
                            "activation " + what);
          expect_equal_bits({ops::quantize_weight, attrs, {matrix, f64({})}, {x, {amax}}, real}, "weight " + what);
          for (const Attrs* each : {&tiles, &small}) {
            expect_equal_bits({ops::quantize_tiles, *each, {value}, {x}, real}, "tiles " + what);
            expect_equal_bits({ops::quantize_blocks, *each, {matrix}, {x}, real}, "blocks " + what);
          }
        }
}

TEST_F(CudaFp8, QuantisesNothingAndWhatIsNotFiniteAsTheCpuDoes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double tiny = std::ldexp(1.0, -140);
  const std::vector<std::pair<std::string, std::vector<double>>> delicate{
      {"zeros", {0, 0}}, {"infinite", {1, -kInfinity, 500}}, {"nan", {1, NAN, 3}}, {"tiny", {tiny, -tiny, 0}}};
  for (const auto& [name, numbers] : delicate)
    for (const char* dtype : {"e4m3", "e5m2"})
      for (int64_t width : {int64_t{32}, int64_t{5}}) {
        Numbers x(static_cast<size_t>(16 * width), 0.0);
        for (size_t i = 0; i < x.size(); ++i) x[i] = numbers[i % numbers.size()];
        double amax = name == "nan" ? NAN : *std::max_element(numbers.begin(), numbers.end(), [](double a, double c) {
          return std::abs(a) < std::abs(c);
        });
        TensorType value = f64({1, 16, width}), matrix = f64({16, width});
        Attrs whole{{"dtype", dtype}, {"transposed", 1}}, tiles{{"dtype", dtype}, {"tile", 128}, {"transposed", 1}};
        expect_equal_bits({ops::absmax, {}, {value}, {x}, DType::f32}, name);
        expect_equal_bits({ops::quantize_activation, whole, {value, f64({})}, {x, {std::abs(amax)}}, DType::f32}, name);
        expect_equal_bits({ops::quantize_tiles, tiles, {value}, {x}, DType::f32}, name);
        expect_equal_bits({ops::quantize_blocks, tiles, {matrix}, {x}, DType::f32}, name);
      }
}

// Of what an op wrote, as it is stored, to the bit; and everything else is what it writes without.
TEST_F(CudaFp8, OpsFindTheLargestMagnitudeOfWhatTheyWrite) {
  struct Written {
    const OpDef& def;
    size_t output;
    TensorTypes inputs;
    Attrs attrs;
  };
  Attrs eps{{"eps", 1e-5}}, heads{{"heads", 4}, {"kv_heads", 2}, {"head_dim", 16}, {"theta", 1e4}}, part = heads;
  part.set("rotary_dim", int64_t{8});
  for (int64_t width : {int64_t{64}, int64_t{1000}, int64_t{4096}, int64_t{37}, int64_t{20000}}) {
    TensorType x = f64({2, 33, width}), w = f64({width}), r = f64({2, 33}), pair = f64({2, 33, 2 * width});
    TensorType qkv = f64({2, 33, 128});
    for (const Written& c : std::vector<Written>{{ops::rms_norm, 0, {x, w}, eps},
                                                 {ops::add_rms_norm, 1, {x, x, w}, eps},
                                                 {ops::rms_norm_backward, 0, {x, x, w, r, x}, {}},
                                                 {ops::layer_norm, 0, {x, w, w}, eps},
                                                 {ops::add_layer_norm, 1, {x, x, w}, eps},
                                                 {ops::gelu, 0, {x}, {}},
                                                 {ops::gelu_erf_backward, 0, {x, x}, {}},
                                                 {ops::geglu_backward, 0, {x, pair}, {}},
                                                 {ops::swiglu, 0, {pair}, {}},
                                                 {ops::swiglu_backward, 0, {x, pair}, {}},
                                                 {ops::rope, 0, {qkv}, heads},
                                                 {ops::rope, 0, {qkv}, part}})
      for (DType real : {DType::bf16, DType::f32}) {
        std::string what = fmt::format("{} {} {}", c.def.name, width, name_of(real));
        KernelRun run{.def = c.def,
                      .attrs = c.attrs,
                      .types = c.inputs,
                      .inputs = draw_inputs(c.def, {.name = what, .inputs = c.inputs}),
                      .real = real};
        std::vector<Numbers> plain = run_cuda_kernel(run, device());
        run.attrs.set("amax", int64_t{1});
        std::vector<Numbers> measured = run_cuda_kernel(run, device());
        ASSERT_EQ(measured.size(), plain.size() + 1) << what;
        double largest = 0;
        for (double number : plain[c.output]) largest = std::max(largest, std::abs(number));
        EXPECT_EQ(measured.back(), Numbers{largest}) << what;
        measured.pop_back();
        EXPECT_EQ(measured, plain) << what;
      }
  }
}

// A run on the first device; skipped where there is no Hopper.
class CudaFp8Training : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && !make_cuda_executor({}, {})->target().fp8)
      GTEST_SKIP() << "products in fp8 are written for Hopper";
  }

  std::vector<double> run(const std::string& out, const MakeExecutor& executors, std::vector<std::string> more) {
    std::vector<std::string> settings = common_settings();
    settings.insert(settings.end(), more.begin(), more.end());
    train(scratch_.config("tiny-llama.toml", settings), scratch_.root() / out, executors);
    std::vector<double> losses;
    for (const std::string& text : scratch_.losses(out)) losses.push_back(std::stod(text));
    return losses;
  }
  static MakeExecutor on_device(Determinism determinism = Determinism::fast) {
    return [determinism](const RankContext& context, int) {
      return make_cuda_executor({.determinism = determinism}, context);
    };
  }

  ScratchRun scratch_{"cuda-fp8"};
};

// Ops other than GEMMs are in f32 on the CPU and in bf16 here, as without fp8.
TEST_F(CudaFp8Training, TrainsAsTheEmulationDoes) {
  std::vector<double> bf16 = run("bf16", on_device(), {"train.precision=bf16"});
  for (const char* recipe : {"fp8", "fp8-block"})
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{}, {"train.recompute=full"}, {"batch.microbatch=4", "batch.seq=48"}}) {
      std::string name = fmt::format("{}-{}", recipe, options.size());
      SCOPED_TRACE(name);
      std::vector<std::string> settings{fmt::format("train.precision={}", recipe)};
      settings.insert(settings.end(), options.begin(), options.end());
      std::vector<double> cpu = run("cpu-" + name, cpu_ranks(), settings),
                          gpu = run("gpu-" + name, on_device(), settings);
      ASSERT_EQ(gpu.size(), cpu.size());
      for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(gpu[i], cpu[i], 1.5e-2 * cpu[i]) << "step " << i + 1;
      EXPECT_LT(gpu.back(), gpu.front());
      if (options.empty()) {
        EXPECT_NE(gpu, bf16) << "nothing is computed in fp8";
      }
    }
}

TEST_F(CudaFp8Training, RepeatableRunsHaveTheSameBits) {
  for (const char* recipe : {"train.precision=fp8", "train.precision=fp8-block"}) {
    std::vector<std::string> settings{recipe, "train.deterministic=true"};
    std::string name = std::string(recipe).substr(16);
    EXPECT_EQ(run("a-" + name, on_device(Determinism::repeatable), settings),
              run("b-" + name, on_device(Determinism::repeatable), settings));
  }
}

// Scales are of the whole value on every mesh: a maximum over ranks, and codes that are gathered.
TEST_F(CudaFp8Training, RanksThatShareADeviceTrainAsOne) {
  std::vector<double> one = run("one", on_device(), {"train.precision=fp8", "batch.microbatch=2"});
  for (const std::vector<std::string>& mesh : {std::vector<std::string>{"mesh.tp=2", "batch.microbatch=2"},
                                               {"mesh.dp=2", "mesh.zero=3"},
                                               {"mesh.pp=2", "batch.microbatch=2"}}) {
    std::vector<std::string> settings = mesh;
    settings.emplace_back("train.precision=fp8");
    SCOPED_TRACE(mesh[0]);
    std::vector<double> ranks = run(mesh[0], on_device(), settings);
    ASSERT_EQ(ranks.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(ranks[i], one[i], 1.5e-2 * one[i]) << "step " << i + 1;
  }
}

}  // namespace
}  // namespace sextant
