#include "cuda/op_between_ranks.h"

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "base/bf16.h"
#include "base/rng.h"
#include "comm/run_ranks.h"
#include "cuda/device_bytes.h"
#include "exec/cpu/kernel.h"
#include "exec/cuda/runtime/kernel.h"
#include "ir/alias.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

namespace {

constexpr unsigned char kOtherByte = 0x5a;  // what outputs hold before

Words draw(const Value& value, int rank, Terms terms) {
  Random random(5, value.path, static_cast<uint64_t>(rank));
  Words words(static_cast<size_t>(value.local_bytes().n));
  for (size_t i = 0; i < static_cast<size_t>(value.local.count()); ++i) {
    float x =
        static_cast<float>(terms == Terms::normal ? random.normal(i) : static_cast<double>(random.below(i, 17)) - 8);
    uint16_t half = bf16_bits(x);
    if (value.dtype == DType::bf16)
      std::memcpy(words.data() + i * 2, &half, 2);
    else
      std::memcpy(words.data() + i * 4, &x, 4);
  }
  return words;
}

// The input whose memory an output is; -1: its own.
int input_under(const Op& op, size_t output, Outputs outputs) {
  for (const Alias& alias : aliases_of(op))
    if (alias.output == static_cast<int>(output) && (outputs == Outputs::over_inputs || alias.rule != Alias::Rule::may))
      return alias.input;
  return -1;
}

std::vector<Tensor> tensors(const Program& program, const std::vector<ValueId>& ids) {
  std::vector<Tensor> out;
  for (ValueId id : ids) out.push_back({nullptr, program[id].dtype, program[id].local});
  return out;
}

struct Operands {
  std::vector<Tensor> in, out;
};

struct Given {
  const Program& program;
  std::vector<Words> inputs;
  Outputs outputs;
};

// Memory(words) makes an operand's memory, and must keep it.
template <class Memory>
Operands place(const Given& given, const Memory& memory) {
  const Program& program = given.program;
  const Op& op = program.regions[0].ops[0];
  Operands operands{tensors(program, op.inputs), tensors(program, op.outputs)};
  for (size_t i = 0; i < given.inputs.size(); ++i) operands.in[i].data = memory(given.inputs[i]);
  for (size_t i = 0; i < operands.out.size(); ++i) {
    int under = input_under(op, i, given.outputs);
    Words other(static_cast<size_t>(program[op.outputs[i]].local_bytes().n), std::byte{kOtherByte});
    operands.out[i].data = under >= 0 ? operands.in[static_cast<size_t>(under)].data : memory(other);
  }
  return operands;
}

std::vector<Words> run_on_cpu(const Given& given, Wire& wire) {
  const Program& program = given.program;
  const Op& op = program.regions[0].ops[0];
  std::vector<std::unique_ptr<std::byte[]>> kept;
  auto memory = [&](const Words& words) {
    kept.emplace_back(new std::byte[words.size() + 64]);
    std::byte* at = kept.back().get() + (64 - reinterpret_cast<uintptr_t>(kept.back().get()) % 64) % 64;
    if (!words.empty()) std::memcpy(at, words.data(), words.size());
    return static_cast<void*>(at);
  };
  Operands operands = place(given, memory);
  const CpuKernel& kernel = cpu_kernel(*op.def);
  int rank = wire.channel.transport.rank();
  auto prepared = kernel.prepare({op, program, rank, coordinate_of(program.mesh, rank), &wire});
  LocalTypes in = types_of(operands.in), out = types_of(operands.out);
  Words scratch(static_cast<size_t>(cpu_kernel_needs().workspace(*op.def, {op.attrs, in, out}).n));
  auto* workspace = static_cast<std::byte*>(memory(scratch));
  ThreadTeam team(1);
  prepared->run({operands.in, operands.out, op.attrs, workspace, team});
  prepared->settle(0);
  std::vector<Words> results;
  for (const Tensor& out : operands.out)
    results.emplace_back(out.as<std::byte>(), out.as<std::byte>() + out.count() * size_of(out.dtype));
  return results;
}

void run_on_device(const Given& given, CudaWires& wires, CudaDevice& device, RankResult& result) {
  const Program& program = given.program;
  const Op& op = program.regions[0].ops[0];
  std::vector<DeviceBytes> kept;
  auto memory = [&](const Words& words) { return static_cast<void*>(kept.emplace_back(words).data()); };
  Operands operands = place(given, memory);
  const CudaKernel& kernel = cuda_kernel(*op.def);
  int rank = wires.transport().rank();
  auto prepared =
      kernel.prepare({op, program, rank, coordinate_of(program.mesh, rank), operands.in, operands.out, device, &wires});
  wires.open_groups();
  LocalTypes in = types_of(operands.in), out = types_of(operands.out);
  Words scratch(static_cast<size_t>(cuda_kernel_needs().workspace(*op.def, {op.attrs, in, out}).n));
  auto* workspace = static_cast<std::byte*>(memory(scratch));
  prepared->launch({operands.in, operands.out, op.attrs, workspace, device, device.stream()});
  prepared->settle(0);
  check_cuda(cudaStreamSynchronize(device.stream()), "waiting for the op");
  result.captured = prepared->capturable();
  for (const Tensor& out : operands.out)
    result.device.push_back(words_at(out.data, static_cast<size_t>(out.count() * size_of(out.dtype))));
}

}  // namespace

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

Program program_of(Graph graph) {
  Program program{.name = graph.name, .mesh = graph.mesh, .values = graph.values};
  for (Value& value : program.values) value.local = local_shape(value.shape, value.layout, program.mesh);
  program.regions = {{.ops = graph.ops}};
  return program;
}

std::vector<RankResult> run_between_ranks(const Program& program, const Setting& setting) {
  std::vector<RankResult> results(static_cast<size_t>(setting.ranks));
  ThreadHub hub(setting.ranks, std::chrono::seconds(30));
  std::vector<RankEnd> ends = run_ranks(hub, setting.ranks, [&](Transport& transport) {
    int rank = transport.rank();
    RankResult& result = results[static_cast<size_t>(rank)];
    Given given{program, {}, setting.outputs};
    for (ValueId id : program.regions[0].ops[0].inputs) given.inputs.push_back(draw(program[id], rank, setting.terms));
    Wire wire{.channel = {.transport = transport, .tag = kCollectiveTag}, .payload_check = PayloadCheck()};
    result.cpu = run_on_cpu(given, wire);
    result.cpu_sent = {wire.bytes_sent.begin(), wire.bytes_sent.end()};

    CudaDevice device(setting.wires == WireKind::nccl ? rank : 0, Determinism::repeatable);
    device.use();
    CudaWires wires(transport, device, setting.wires);
    run_on_device(given, wires, device, result);
    result.device_sent = wires.bytes_sent();
  });
  for (const RankEnd& end : ends)
    if (!end.error.empty() && !end.is_echo) throw std::runtime_error(end.error);
  return results;
}

}  // namespace sextant
