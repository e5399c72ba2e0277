// Times the CUDA kernels that memory bounds, at the shapes of real training steps: microseconds per call, GB/s with
// every operand counted once, and the share of what a plain copy reaches in the same run. Calls go back to back over
// several sets of operands, so that none is found in L2. Usage: bench_cuda_kernels [only cases whose name contains
// this]
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bf16.h"
#include "base/rng.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/cross_entropy.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {
namespace {

constexpr int kRepeats = 40, kWarmUp = 4;
constexpr int64_t kSetsOfBytes = int64_t{1} << 30;  // sets of operands are added up to this, two at least
constexpr int64_t kIds = 50000;                     // tokens, targets and steps lie below

enum class Traffic { whole, none };  // none: an operand that the kernel hardly touches

struct Operand {
  DType dtype;
  std::vector<int64_t> dims;
  Traffic traffic = Traffic::whole;
  int over = -1;  // an output in the place of this input

  int64_t bytes() const { return LocalShape(dims).count() * size_of(dtype); }
};

// One set of operands on the device.
struct Placed {
  std::vector<Tensor> in, out;
  std::byte* workspace = nullptr;
};

struct Case {
  std::string name, shape;
  std::vector<Operand> in, out;
  std::function<int64_t(const Placed&)> workspace;
  std::function<void(const Placed&)> launch;

  int64_t traffic() const {
    int64_t bytes = 0;
    for (const std::vector<Operand>* operands : {&in, &out})
      for (const Operand& operand : *operands) bytes += operand.traffic == Traffic::whole ? operand.bytes() : 0;
    return bytes;
  }
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (void* block : blocks_) cudaFree(block);
  }

  std::byte* take(int64_t bytes) {
    void* block = nullptr;
    check_cuda(cudaMalloc(&block, static_cast<size_t>(std::max<int64_t>(256, bytes))), "allocate");
    blocks_.push_back(block);
    return static_cast<std::byte*>(block);
  }

 private:
  std::vector<void*> blocks_;
};

// Numbers in (0, 1], or ids: a pattern that is repeated until the tensor is full.
std::vector<std::byte> pattern_of(DType dtype) {
  constexpr uint64_t kElements = 1 << 16;
  Random random(1, "bench");
  std::vector<std::byte> bytes(kElements * static_cast<uint64_t>(size_of(dtype)));
  auto fill = [&]<class T>(T* to, const auto& value) {
    for (uint64_t i = 0; i < kElements; ++i) to[i] = static_cast<T>(value(i));
  };
  auto real = [&](uint64_t i) { return static_cast<float>(1.0 - random.uniform(i)); };
  if (dtype == DType::f32) fill(reinterpret_cast<float*>(bytes.data()), real);
  if (dtype == DType::bf16)
    fill(reinterpret_cast<uint16_t*>(bytes.data()), [&](uint64_t i) { return bf16_bits(real(i)); });
  if (dtype == DType::i32)
    fill(reinterpret_cast<int32_t*>(bytes.data()), [&](uint64_t i) { return 1 + random.below(i, kIds - 1); });
  return bytes;
}

Tensor place(const Operand& operand, DeviceMemory& memory) {
  Tensor tensor{memory.take(operand.bytes()), operand.dtype, LocalShape(operand.dims)};
  std::vector<std::byte> pattern = pattern_of(operand.dtype);
  int64_t filled = std::min(operand.bytes(), static_cast<int64_t>(pattern.size()));
  check_cuda(cudaMemcpy(tensor.data, pattern.data(), static_cast<size_t>(filled), cudaMemcpyHostToDevice), "fill");
  for (int64_t piece = 0; filled < operand.bytes(); filled += piece) {
    piece = std::min(filled, operand.bytes() - filled);
    check_cuda(
        cudaMemcpy(tensor.as<std::byte>() + filled, tensor.data, static_cast<size_t>(piece), cudaMemcpyDeviceToDevice),
        "fill");
  }
  return tensor;
}

Placed place(const Case& timed, DeviceMemory& memory) {
  Placed placed;
  for (const Operand& operand : timed.in) placed.in.push_back(place(operand, memory));
  for (const Operand& operand : timed.out)
    placed.out.push_back(operand.over < 0 ? place(operand, memory) : placed.in[static_cast<size_t>(operand.over)]);
  placed.workspace = memory.take(timed.workspace(placed));
  return placed;
}

double microseconds(const Case& timed, cudaStream_t stream) {
  DeviceMemory memory;
  std::vector<Placed> sets;
  do sets.push_back(place(timed, memory));
  while (sets.size() < 2 || static_cast<int64_t>(sets.size()) * timed.traffic() < kSetsOfBytes);
  cudaEvent_t begin = nullptr, end = nullptr;
  check_cuda(cudaEventCreate(&begin), "event");
  check_cuda(cudaEventCreate(&end), "event");
  for (int i = 0; i < kWarmUp + kRepeats; ++i) {
    if (i == kWarmUp) check_cuda(cudaEventRecord(begin, stream), "begin");
    timed.launch(sets[static_cast<size_t>(i) % sets.size()]);
  }
  check_cuda(cudaEventRecord(end, stream), "end");
  check_cuda(cudaEventSynchronize(end), timed.name);
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "time");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1e3 * static_cast<double>(milliseconds) / kRepeats;
}

class Cases {
 public:
  explicit Cases(const CudaDevice& device) : device_(device) {}

  std::vector<Case> all() {
    for (int64_t width : {1600, 4800, 6400}) column_sums(16384, width);
    for (int64_t width : {768, 2304, 3072}) column_sums(65536, width);
    for (auto [rows, width] : kNormed) norms(rows, width);
    cross_entropy(9472, 50304);
    cross_entropy(8192, 128256);
    activations();
    for (int64_t width : {4096, 14336, 28672}) quantising(8192, width);
    rest();
    return std::move(cases_);
  }

 private:
  static constexpr std::pair<int64_t, int64_t> kNormed[] = {{16384, 1600}, {65536, 768}, {32768, 2048}, {12288, 3072}};

  static std::string shape(int64_t rows, int64_t width) { return fmt::format("{} x {}", rows, width); }
  static Operand bf16(std::vector<int64_t> dims) { return {DType::bf16, std::move(dims)}; }
  static Operand f32(std::vector<int64_t> dims) { return {DType::f32, std::move(dims)}; }

  void column_sums(int64_t rows, int64_t width) {
    cases_.push_back({"column_sums",
                      shape(rows, width),
                      {bf16({rows, width})},
                      {f32({width})},
                      [=](const Placed&) { return cuda::column_sums_workspace(rows, width); },
                      [=, this](const Placed& set) {
                        cuda::sum_columns({set.in[0].data, DType::bf16, rows, width, set.out[0].as<float>(),
                                           cuda::ColumnSums::Write::over, set.workspace, device_.stream()});
                      }});
  }

  void cross_entropy(int64_t rows, int64_t vocabulary) {
    Operand w{DType::bf16, {vocabulary, 1}, Traffic::none}, targets{DType::i32, {rows}};
    Operand written = bf16({rows, vocabulary});
    written.over = 0;
    cases_.push_back({"cross_entropy_rows",
                      shape(rows, vocabulary),
                      {bf16({rows, vocabulary}), targets, w, f32({})},
                      {written, f32({rows})},
                      [](const Placed&) { return int64_t{0}; },
                      [=, this](const Placed& set) {
                        cuda::cross_entropy_rows({.logits = set.in[0].data,
                                                  .dtype = DType::bf16,
                                                  .rows = rows,
                                                  .vocabulary = vocabulary,
                                                  .stride = vocabulary,
                                                  .targets = set.in[1].as<int32_t>(),
                                                  .w = &set.in[2],
                                                  .dloss = set.in[3].as<float>(),
                                                  .losses = set.out[1].as<float>(),
                                                  .stream = device_.stream()});
                      }});
  }

  void norms(int64_t rows, int64_t width) {
    Operand x = bf16({rows, width}), w = bf16({width}), of_row = f32({rows}), of_column = f32({width});
    Attrs eps{{"eps", 1e-5}};
    op("layer_norm", shape(rows, width), ops::layer_norm, {{x, w, w}, {x, of_row, of_row}}, eps);
    op("add_layer_norm", shape(rows, width), ops::add_layer_norm, {{x, x, w, w}, {x, x, of_row, of_row}}, eps);
    op("layer_norm_backward", shape(rows, width), ops::layer_norm_backward,
       {{x, x, w, of_row, of_row, x}, {x, of_column, of_column}});
    op("rms_norm", shape(rows, width), ops::rms_norm, {{x, w}, {x, of_row}}, eps);
    op("add_rms_norm", shape(rows, width), ops::add_rms_norm, {{x, x, w}, {x, x, of_row}}, eps);
    op("rms_norm_backward", shape(rows, width), ops::rms_norm_backward, {{x, x, w, of_row, x}, {x, of_column}});
  }

  void activations() {
    for (auto [rows, width] : {std::pair<int64_t, int64_t>{32768, 8192}, {12288, 8192}}) {
      Operand x = bf16({rows, 2 * width}), y = bf16({rows, width});
      op("swiglu", shape(rows, width), ops::swiglu, {{x}, {y}});
      op("swiglu_backward", shape(rows, width), ops::swiglu_backward, {{y, x}, {x}});
    }
    for (auto [rows, width] : {std::pair<int64_t, int64_t>{65536, 3072}, {16384, 6400}}) {
      Operand x = bf16({rows, width});
      op("gelu", shape(rows, width), ops::gelu, {{x}, {x}});
      op("gelu_backward", shape(rows, width), ops::gelu_backward, {{x, x}, {x}});
    }
  }

  // Of what a step in fp8 adds: the codes of a value and of its transpose, and amax apart from and with what is
  // written.
  void quantising(int64_t rows, int64_t width) {
    Operand x = bf16({1, rows, width}), q{DType::e4m3, {1, rows, width}}, qt{DType::e4m3, {width, 1, rows}};
    Attrs whole{{"dtype", "e4m3"}, {"transposed", 1}}, tiles{{"dtype", "e4m3"}, {"tile", 128}, {"transposed", 1}};
    op("absmax", shape(rows, width), ops::absmax, {{x}, {f32({})}});
    op("quantize_activation", shape(rows, width), ops::quantize_activation, {{x, f32({})}, {q, f32({}), qt}}, whole);
    op("quantize_tiles", shape(rows, width), ops::quantize_tiles,
       {{x}, {q, f32({1, rows, width / 128}), qt, f32({width, 1, rows / 128})}}, tiles);
    op("swiglu amax", shape(rows, width), ops::swiglu, {{bf16({1, rows, 2 * width})}, {x, f32({})}}, {{"amax", 1}});
    op("rms_norm amax", shape(rows, width), ops::rms_norm, {{x, bf16({width})}, {x, f32({rows}), f32({})}},
       {{"amax", 1}, {"eps", 1e-5}});
  }

  void rest() {
    constexpr int64_t kElements = 100'000'000;
    std::vector<Operand> state{bf16({kElements}), f32({kElements}), f32({kElements}), f32({kElements}),
                               f32({}),           f32({}),          {DType::i32, {}}, {DType::u16, {kElements}}};
    std::vector<Operand> updated{state[0], state[2], state[3], state[7]};
    for (auto [output, input] : {std::pair{0, 0}, {1, 2}, {2, 3}, {3, 7}})
      updated[static_cast<size_t>(output)].over = input;
    op("adamw", "100 M", ops::adamw, {state, updated},
       {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}});
    Operand tokens{DType::i32, {16, 1024}}, table{DType::bf16, {50304, 1600}, Traffic::none};
    op("embedding_backward", shape(16384, 1600), ops::embedding_backward,
       {{bf16({16, 1024, 1600}), tokens, table}, {f32({50304, 1600})}});
    Operand packed = bf16({8, 4096, 48 * 64}), wide = bf16({3, 4096, 40 * 128});
    op("rope", shape(32768, 48 * 64), ops::rope, {{packed}, {packed}},
       {{"heads", 32}, {"kv_heads", 8}, {"head_dim", 64}, {"theta", 500000.0}});
    op("rope", shape(12288, 40 * 128), ops::rope, {{wide}, {wide}},
       {{"heads", 24}, {"kv_heads", 8}, {"head_dim", 128}, {"theta", 500000.0}});
  }

  struct Operands {
    std::vector<Operand> in, out;
  };

  void op(std::string name, std::string shape, const OpDef& def, Operands operands, const Attrs& attrs = {}) {
    cases_.push_back({std::move(name), std::move(shape), std::move(operands.in), std::move(operands.out),
                      [&def, attrs](const Placed& set) {
                        LocalTypes in = types_of(set.in), out = types_of(set.out);
                        return cuda_kernel_needs().workspace(def, {attrs, in, out}).n;
                      },
                      [&def, attrs, this](const Placed& set) {
                        const CudaKernel& kernel = cuda_kernel(def);
                        CudaCall call{set.in, set.out, attrs, set.workspace, device_, device_.stream()};
                        if (kernel.launch)
                          kernel.launch(call);
                        else
                          kernel.launch_all({&call, 1});
                      }});
  }

  const CudaDevice& device_;
  std::vector<Case> cases_;
};

Case copy_case(cudaStream_t stream) {
  Operand half{DType::bf16, {int64_t{1} << 28}};
  return {"copy",
          "512 MiB",
          {half},
          {half},
          [](const Placed&) { return int64_t{0}; },
          [=](const Placed& set) {
            check_cuda(cudaMemcpyAsync(set.out[0].data, set.in[0].data,
                                       static_cast<size_t>(set.in[0].count() * size_of(set.in[0].dtype)),
                                       cudaMemcpyDeviceToDevice, stream),
                       "copy");
          }};
}

void run(std::string_view only) {
  CudaDevice device(0, Determinism::repeatable);
  device.use();
  double copied = 0;  // GB/s
  auto print = [&](const Case& timed) {
    double us = microseconds(timed, device.stream()), rate = static_cast<double>(timed.traffic()) / us * 1e-3;
    if (copied == 0) copied = rate;
    fmt::print("{:<20} {:>15} {:>9.1f} us {:>6.0f} GB/s {:>4.0f}% of copy\n", timed.name, timed.shape, us, rate,
               100 * rate / copied);
  };
  print(copy_case(device.stream()));
  Cases cases(device);
  for (const Case& timed : cases.all())
    if (timed.name.find(only) != std::string::npos) print(timed);
}

}  // namespace
}  // namespace sextant

int main(int count, char** arguments) {
  try {
    sextant::run(count > 1 ? arguments[1] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
