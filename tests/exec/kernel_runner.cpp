#include "exec/kernel_runner.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <new>

#include "base/bf16.h"
#include "base/fp8.h"
#include "base/rng.h"
#include "exec/cpu/kernels/gemm.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {

namespace {

constexpr std::align_val_t kAlignment{64};

struct AlignedBytes {
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, kAlignment); }
  };
  explicit AlignedBytes(int64_t bytes)
      : data(static_cast<std::byte*>(::operator new[](static_cast<size_t>(bytes) + 1, kAlignment))) {
    std::memset(data.get(), 0xff, static_cast<size_t>(bytes));  // NaN in every floating-point format
  }
  std::unique_ptr<std::byte[], Free> data;
};

Tensor tensor_of(const TensorType& type, DType real, std::byte* data) {
  auto dims = type.shape.dims();
  bool kept = type.dtype != DType::f64 && type.dtype != DType::f32;
  return {data, kept ? type.dtype : real, LocalShape(std::vector<int64_t>(dims.begin(), dims.end()))};
}

template <class T>
void write_as(const Tensor& tensor, const Numbers& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) tensor.as<T>()[i] = static_cast<T>(numbers[i]);
}

void write(const Tensor& tensor, const Numbers& numbers) {
  if (tensor.dtype == DType::i32) return write_as<int32_t>(tensor, numbers);
  if (tensor.dtype == DType::i64) return write_as<int64_t>(tensor, numbers);
  if (tensor.dtype == DType::u8) return write_as<uint8_t>(tensor, numbers);
  if (tensor.dtype == DType::bf16) {
    for (size_t i = 0; i < numbers.size(); ++i) tensor.as<uint16_t>()[i] = bf16_bits(static_cast<float>(numbers[i]));
    return;
  }
  if (tensor.dtype == DType::f32) return write_as<float>(tensor, numbers);
  if (tensor.dtype == DType::f64) return write_as<double>(tensor, numbers);
  for (size_t i = 0; i < numbers.size(); ++i)
    tensor.as<uint8_t>()[i] = fp8_bits(fp8_format(tensor.dtype), static_cast<float>(numbers[i]));
}

Numbers read(const Tensor& tensor) {
  Numbers numbers(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = is_fp8(tensor.dtype)
                     ? static_cast<double>(fp8_value(fp8_format(tensor.dtype), tensor.as<uint8_t>()[i]))
                 : tensor.dtype == DType::bf16 ? static_cast<double>(bf16_value(tensor.as<uint16_t>()[i]))
                 : tensor.dtype == DType::u8   ? static_cast<double>(tensor.as<uint8_t>()[i])
                 : tensor.dtype == DType::i32  ? static_cast<double>(tensor.as<int32_t>()[i])
                 : tensor.dtype == DType::f32  ? static_cast<double>(tensor.as<float>()[i])
                                               : tensor.as<double>()[i];
  return numbers;
}

const Alias* alias_of(const KernelRun& run, int output) {
  for (const Alias& alias : run.def.alias)
    if (alias.output == output && (alias.rule == Alias::Rule::must || alias.input == run.over_input)) return &alias;
  return nullptr;
}

// Second moments, sums of squares and inverse deviations are positive; a step counts from 1. In ops of the update they
// stand behind weights and gradients.
size_t first_positive(const OpDef& def) {
  const std::map<const OpDef*, size_t> first{
      {&ops::adafactor_direction, 1}, {&ops::adafactor_means, 0}, {&ops::adafactor_step, 2}, {&ops::adafactor_sums, 2},
      {&ops::adafactor_vector, 2},    {&ops::adamw, 3},           {&ops::adamw_int8, 4},     {&ops::adamw_rounded, 3},
      {&ops::clip_scale, 0},          {&ops::clip_lost, 0},       {&ops::clip_scaled, 0}};
  auto at = first.find(&def);
  return at == first.end() ? SIZE_MAX : at->second;
}

}  // namespace

std::vector<Numbers> run_kernel(const KernelRun& run) {
  cpu::use_single_threaded_blas();
  std::vector<AlignedBytes> buffers;
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < run.types.size(); ++i) {
    buffers.emplace_back(run.types[i].bytes().n);
    in.push_back(tensor_of(run.types[i], run.real, buffers.back().data.get()));
    write(in.back(), run.inputs[i]);
  }
  TensorTypes types = run.types;
  if (run.attrs.has("accumulate")) types.push_back({});  // stands for the total, which output 0 is
  TensorTypes out_types = infer_types(run.def, run.attrs, types);
  for (size_t i = 0; i < out_types.size(); ++i) {
    const Alias* alias = alias_of(run, static_cast<int>(i));
    // An output that is f32 in every model is run in f64 too.
    if (!alias) buffers.emplace_back(out_types[i].shape.count() * int64_t{sizeof(double)});
    void* data = alias ? in[static_cast<size_t>(alias->input)].data : buffers.back().data.get();
    out.push_back(tensor_of(out_types[i], run.real, static_cast<std::byte*>(data)));
  }
  if (!run.first_output.empty()) write(out[0], run.first_output);

  const CpuKernel& kernel = cpu_kernel(run.def);
  const Attrs& attrs = run.kernel_attrs ? *run.kernel_attrs : run.attrs;
  AlignedBytes workspace(cpu_kernel_needs().workspace(run.def, {attrs, types_of(in), types_of(out), run.threads}).n);
  ThreadTeam team(run.threads);
  kernel.run({in, out, attrs, workspace.data.get(), team});

  std::vector<Numbers> results;
  for (const Tensor& tensor : out) results.push_back(read(tensor));
  return results;
}

std::vector<Numbers> draw_inputs(const OpDef& def, const Example& example, uint64_t seed) {
  std::vector<Numbers> inputs;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const TensorType& type = example.inputs[i];
    Random random(seed, def.name, i);
    bool positive = i >= first_positive(def) || (&def == &ops::rms_norm_backward && i == 3) ||
                    (&def == &ops::layer_norm_backward && i == 4);
    Numbers numbers(static_cast<size_t>(type.shape.count()));
    for (size_t j = 0; j < numbers.size(); ++j) {
      if (example.distinct && type.dtype == DType::i32)
        numbers[j] = static_cast<double>(example.distinct_integer(static_cast<int64_t>(j), type.shape.last()));
      else if (type.dtype == DType::u8)
        numbers[j] = static_cast<double>(random.below(j, static_cast<uint64_t>(example.integers_below)));
      else if (type.dtype == DType::i32 || type.dtype == DType::i64)
        numbers[j] =
            static_cast<double>(random.below(j, static_cast<uint64_t>(example.integers_below)) + (positive ? 1 : 0));
      else
        numbers[j] = static_cast<float>(positive ? std::abs(random.normal(j)) : random.normal(j));
    }
    inputs.push_back(std::move(numbers));
  }
  return inputs;
}

double relative_error(const Numbers& a, const Numbers& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace sextant
