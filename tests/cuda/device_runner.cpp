#include "cuda/device_runner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bf16.h"
#include "base/f16.h"
#include "base/fp8.h"
#include "cuda/operand_dtypes.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

namespace {

constexpr int64_t kGuard = 256;
constexpr int kPoison = 0xff;  // NaN in every floating-point format

LocalShape local_shape(const GlobalShape& shape) {
  auto dims = shape.dims();
  return LocalShape(std::vector<int64_t>(dims.begin(), dims.end()));
}

template <class T, class Convert>
void upload(const Tensor& tensor, const Numbers& numbers, const Convert& convert) {
  std::vector<T> host(numbers.size());
  std::transform(numbers.begin(), numbers.end(), host.begin(), convert);
  check_cuda(cudaMemcpy(tensor.data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
}

template <class T, class Convert>
Numbers download(const Tensor& tensor, const Convert& convert) {
  std::vector<T> host(static_cast<size_t>(tensor.count()));
  check_cuda(cudaMemcpy(host.data(), tensor.data, host.size() * sizeof(T), cudaMemcpyDeviceToHost), "download");
  Numbers numbers(host.size());
  std::transform(host.begin(), host.end(), numbers.begin(), convert);
  return numbers;
}

// The operands of one run, and what they lie in.
struct Operands {
  std::vector<GuardedBytes> buffers;
  std::vector<Tensor> in, out;

  Tensor add(const TensorType& type) {
    buffers.emplace_back(type.bytes().n);
    return {buffers.back().data(), type.dtype, local_shape(type.shape)};
  }
};

const Alias* alias_of(const KernelRun& run, int output) {
  for (const Alias& alias : run.def.alias)
    if (alias.output == output && (alias.rule == Alias::Rule::must || alias.input == run.over_input)) return &alias;
  return nullptr;
}

TensorTypes device_types(const KernelRun& run) {
  TensorTypes types = run.types;
  for (size_t i = 0; i < types.size(); ++i) types[i].dtype = input_dtype(run.def, i, types[i].dtype, run.real);
  return types;
}

Operands place_operands(const KernelRun& run) {
  Operands operands;
  TensorTypes types = device_types(run);
  for (size_t i = 0; i < types.size(); ++i) {
    operands.in.push_back(operands.add(types[i]));
    write_to_device(operands.in.back(), run.inputs[i]);
  }
  if (run.attrs.has("accumulate")) types.push_back({});  // stands for the total, which output 0 is
  TensorTypes out_types = infer_types(run.def, run.attrs, types);
  for (size_t i = 0; i < out_types.size(); ++i) {
    const Alias* alias = alias_of(run, static_cast<int>(i));
    operands.out.push_back(alias ? operands.in[static_cast<size_t>(alias->input)] : operands.add(out_types[i]));
  }
  if (!run.first_output.empty()) write_to_device(operands.out[0], run.first_output);
  return operands;
}

// A Program of this op alone, for kernels that are prepared.
Program program_of(const KernelRun& run, const Operands& operands) {
  Program program;
  Op op{.def = &run.def, .attrs = run.attrs};
  auto add = [&](const Tensor& tensor) {
    auto dims = tensor.shape.dims();
    auto id = static_cast<ValueId>(program.values.size());
    program.values.push_back({.id = id,
                              .path = fmt::format("v{}", id),
                              .dtype = tensor.dtype,
                              .shape = GlobalShape(std::vector<int64_t>(dims.begin(), dims.end())),
                              .local = tensor.shape});
    return id;
  };
  for (const Tensor& tensor : operands.in) op.inputs.push_back(add(tensor));
  for (const Tensor& tensor : operands.out) op.outputs.push_back(add(tensor));
  program.regions.push_back({.ops = {op}});
  return program;
}

void launch(const KernelRun& run, const Operands& operands, const CudaCall& call, CudaDevice& device) {
  const CudaKernel& kernel = cuda_kernel(run.def);
  if (kernel.launch) return kernel.launch(call);
  if (kernel.launch_all) return kernel.launch_all({&call, 1});
  Program program = program_of(run, operands);
  auto prepared = kernel.prepare({.op = program.regions[0].ops[0],
                                  .program = program,
                                  .rank = 0,
                                  .at = {},
                                  .in = operands.in,
                                  .out = operands.out,
                                  .device = device});
  prepared->launch(call);
  check_cuda(cudaStreamSynchronize(call.stream), "wait");
}

}  // namespace

GuardedBytes::GuardedBytes(int64_t bytes) : bytes_(bytes) {
  check_cuda(cudaMalloc(&data_, static_cast<size_t>(bytes + kGuard)), "allocate");
  check_cuda(cudaMemset(data_, kPoison, static_cast<size_t>(bytes + kGuard)), "poison");
  check_cuda(cudaDeviceSynchronize(), "poison");
}

GuardedBytes::~GuardedBytes() {
  cudaFree(data_);
}

GuardedBytes::GuardedBytes(GuardedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

bool GuardedBytes::end_is_whole() const {
  std::array<unsigned char, kGuard> guard{};
  check_cuda(cudaMemcpy(guard.data(), static_cast<std::byte*>(data_) + bytes_, kGuard, cudaMemcpyDeviceToHost), "read");
  return std::all_of(guard.begin(), guard.end(), [](unsigned char byte) { return byte == kPoison; });
}

void write_to_device(const Tensor& tensor, const Numbers& numbers) {
  if (tensor.dtype == DType::i32)
    upload<int32_t>(tensor, numbers, [](double x) { return static_cast<int32_t>(x); });
  else if (tensor.dtype == DType::i64)
    upload<int64_t>(tensor, numbers, [](double x) { return static_cast<int64_t>(x); });
  else if (tensor.dtype == DType::u8)
    upload<uint8_t>(tensor, numbers, [](double x) { return static_cast<uint8_t>(x); });
  else if (tensor.dtype == DType::u16)
    upload<uint16_t>(tensor, numbers, [](double x) { return static_cast<uint16_t>(x); });
  else if (is_fp8(tensor.dtype))
    upload<uint8_t>(tensor, numbers,
                    [&](double x) { return fp8_bits(fp8_format(tensor.dtype), static_cast<float>(x)); });
  else if (tensor.dtype == DType::f64)
    upload<double>(tensor, numbers, [](double x) { return x; });
  else if (tensor.dtype == DType::bf16)
    upload<uint16_t>(tensor, numbers, [](double x) { return bf16_bits(static_cast<float>(x)); });
  else if (tensor.dtype == DType::f16)
    upload<uint16_t>(tensor, numbers, [](double x) { return f16_bits(static_cast<float>(x)); });
  else
    upload<float>(tensor, numbers, [](double x) { return static_cast<float>(x); });
}

Numbers read_from_device(const Tensor& tensor) {
  if (tensor.dtype == DType::u8) return download<uint8_t>(tensor, [](uint8_t x) { return static_cast<double>(x); });
  if (tensor.dtype == DType::u16) return download<uint16_t>(tensor, [](uint16_t x) { return static_cast<double>(x); });
  if (tensor.dtype == DType::bf16)
    return download<uint16_t>(tensor, [](uint16_t x) { return static_cast<double>(bf16_value(x)); });
  if (tensor.dtype == DType::f16)
    return download<uint16_t>(tensor, [](uint16_t x) { return static_cast<double>(f16_value(x)); });
  if (is_fp8(tensor.dtype))
    return download<uint8_t>(tensor,
                             [&](uint8_t x) { return static_cast<double>(fp8_value(fp8_format(tensor.dtype), x)); });
  if (tensor.dtype == DType::f64) return download<double>(tensor, [](double x) { return x; });
  if (tensor.dtype == DType::i32) return download<int32_t>(tensor, [](int32_t x) { return static_cast<double>(x); });
  return download<float>(tensor, [](float x) { return static_cast<double>(x); });
}

DType input_dtype(const OpDef& def, size_t input, DType declared, DType real) {
  if (declared != DType::f64) return declared;
  return stays_f32(def, input) ? DType::f32 : real;
}

std::vector<Numbers> rounded_inputs(const KernelRun& run) {
  std::vector<Numbers> inputs = run.inputs;
  TensorTypes types = device_types(run);
  for (size_t i = 0; i < inputs.size(); ++i)
    for (double& x : inputs[i]) {
      if (types[i].dtype == DType::bf16) x = static_cast<double>(bf16_value(bf16_bits(static_cast<float>(x))));
      if (types[i].dtype == DType::f16) x = static_cast<double>(f16_value(f16_bits(static_cast<float>(x))));
      if (types[i].dtype == DType::f32) x = static_cast<double>(static_cast<float>(x));
    }
  return inputs;
}

Bytes planned_scratch(const OpDef& def, const Attrs& attrs, std::span<const Tensor> in, std::span<const Tensor> out,
                      Determinism determinism) {
  return cuda_kernel_needs().workspace(def, {attrs, types_of(in), types_of(out), 1, determinism});
}

std::vector<Numbers> run_cuda_kernel(const KernelRun& run, CudaDevice& device) {
  Operands operands = place_operands(run);
  Bytes scratch = planned_scratch(run.def, run.attrs, operands.in, operands.out, device.determinism());
  operands.buffers.emplace_back(scratch.n);
  CudaCall call{.in = operands.in,
                .out = operands.out,
                .attrs = run.attrs,
                .workspace = static_cast<std::byte*>(operands.buffers.back().data()),
                .device = device,
                .stream = device.stream()};
  launch(run, operands, call, device);
  check_cuda(cudaGetLastError(), "launch");
  check_cuda(cudaStreamSynchronize(call.stream), "run");
  for (const GuardedBytes& buffer : operands.buffers) EXPECT_TRUE(buffer.end_is_whole()) << "written behind a buffer";
  std::vector<Numbers> results;
  for (const Tensor& tensor : operands.out) results.push_back(read_from_device(tensor));
  return results;
}

CudaDevice& OnDevice::fast_device() {
  if (!fast_device_) fast_device_ = std::make_unique<CudaDevice>(0, Determinism::fast, Tuning::first_choice);
  return *fast_device_;
}

void OnDevice::SetUpTestSuite() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return;
  device_ = std::make_unique<CudaDevice>(0, Determinism::repeatable);
  device_->use();
}

void OnDevice::SetUp() {
  if (!device_) GTEST_SKIP() << "no CUDA device";
}

}  // namespace sextant
