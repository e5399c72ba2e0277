#include "cost/price.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cost/attention_time.h"
#include "cost/gemm_time.h"
#include "cost/measured_ops.h"
#include "cost/passes.h"
#include "ir/alias.h"
#include "mesh/placement.h"

namespace sextant {

namespace {

// Reading and writing the logits of a loss again: in one pass over 16-bit ones, or as f32 in the separate steps of a
// softmax. Step by step: cast (2 + 4), maximum (4), difference (8), exponential (8), sum (4), quotient (8), and back:
// product (8), cast (6).
constexpr double kLogitBytes = 6, kLogitBytesInF32 = 26, kLogitBytesStepByStep = 52;
// Below this many bytes a streaming kernel does not fill the device.
constexpr double kHalfRateBytes = 2e6;
// Of an element in NVFP4, with its sixteenth of a scale.
constexpr double kFp4Bytes = 0.5 + 1.0 / 16;

// The rank of this Program's class that stands at the origin of every other axis.
int own_rank(const Program& program) {
  Coordinate at(program.mesh.axes.size(), 0);
  if (auto axis = program.mesh.find(AxisRole::pipeline)) at[static_cast<size_t>(*axis)] = program.stage_rank;
  return rank_of(program.mesh, at);
}

std::string_view units_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "fp16";
    case DType::e4m3:
    case DType::e5m2:
      return "fp8";
    default:
      return "fp32";
  }
}

// The units that GEMMs run on: those that the op names, else of an operand of 8 or 16 bits, else f32's. Devices older
// than bf16 have fp16 in its place.
std::string compute_dtype(const Machine& machine, const Program& program, const Op& op, const Cost& cost) {
  std::vector<DType> types;
  for (ValueId id : op.inputs) types.push_back(program[id].dtype);
  if (cost.computes_in) types = {*cost.computes_in};
  for (DType type : types) {
    std::string units(units_of(type));
    if (units == "fp32") continue;
    // Both formats of 16 bits run on the same units: what was measured of bf16 holds for fp16.
    if (type == DType::f16 && machine.peak("fp16") <= machine.peak("bf16")) return "bf16";
    return machine.peak(units) > 0 ? units : "fp16";
  }
  return "fp32";
}

// The choice of experts, or its backward: once in each direction of a layer with experts. (Ops that move tokens to
// experts know of groups of tokens.)
bool is_routing(const Op& op) {
  return op.attrs.has("top_k") && !op.attrs.has("positions");
}

GroupedPass grouped_pass(Phase phase) {
  if (phase == Phase::weight_gradient) return GroupedPass::weight_gradient;
  return phase == Phase::input_gradient ? GroupedPass::input_gradient : GroupedPass::forward;
}

// GEMMs of blocks: 16-bit operands on both sides. Those of the router and of the loss keep theirs.
bool takes_quantised(const Program& program, const Op& op, const Cost& cost) {
  if (cost.gemms.empty() || cost.attention || cost.inner > 0 || cost.computes_in) return false;
  bool half_in = std::ranges::all_of(op.inputs, [&](ValueId id) {
    DType type = program[id].dtype;
    if (is_step_sum(program[id].kind)) return true;  // what a weight gradient is added to
    return type == DType::bf16 || type == DType::f16 || type == DType::i32;
  });
  bool half_out = std::ranges::all_of(op.outputs, [&](ValueId id) { return program[id].dtype != DType::f32; });
  return half_in && (half_out || op.phase == Phase::weight_gradient);
}

// Scales that are known before an element is read, or of elements that one kernel holds: the operand is read once.
bool quantises_in_one_pass(Products products) {
  return products == Products::fp8_delayed || products == Products::mxfp8;
}

// The operand is read and written in 8 or 4 bits for this GEMM and, the other way round, for the one of the weights;
// read once more where its own largest value is looked for first. NVFP4 has a scale for the tensor above those of its
// blocks, and what goes into weight gradients is rotated by a Hadamard matrix: a kernel looks for the largest value of
// both, one quantises the rows, and another rotates and quantises the columns (Transformer Engine 2.8,
// NVFP4Quantizer::quantize_impl).
double quantised_bytes_per_element(Products products) {
  if (products == Products::nvfp4) return 3 * 2 + 2 * kFp4Bytes;
  return 2 + 2 + (quantises_in_one_pass(products) ? 0 : 2);
}

// Kernels that look for the largest value and quantise. (In other formats than NVFP4 the former is counted with the
// latter.)
double kernels_of_quantisation(Products products, Phase phase) {
  return products == Products::nvfp4 && phase != Phase::weight_gradient ? 3 : 1;
}

// Of activations. Weights are quantised once in a step.
double quantised_bytes(Products products, const Program& program, const Op& op) {
  if (op.phase == Phase::weight_gradient) return 0;
  double elements = static_cast<double>(program[op.inputs[0]].local.count()) * op.attrs.real_or("filled", 1);
  return elements * quantised_bytes_per_element(products);
}

// Operand formats of an op's GEMM: the format in which its Program is planned (passes/price_format.h) where there is
// one, else the profile's.
Products products_of(const Op& op, const SoftwareProfile& profile) {
  if (!op.attrs.has(kPricedIn)) return profile.products;
  const std::string format = op.attrs.text_or(kPricedIn, "");
  std::optional<Products> products = products_named(format);
  BUG_IF(!products, "nothing is priced in {}", format);
  return *products;
}

// The units that quantised GEMMs run on, or nothing where the device has none for them.
std::string_view quantised_units(Products products, const Machine& machine) {
  std::string_view units = products == Products::nvfp4 ? "fp4" : "fp8";
  return products != Products::as_held && machine.peak(std::string(units)) > 0 ? units : "";
}

double operand_bytes(std::string_view dtype) {
  return dtype == "fp32" ? 4 : dtype == "fp8" ? 1 : dtype == "fp4" ? kFp4Bytes : 2;
}

// Where each expert has a GEMM of its own, its activations are quantised in kernels of their own too: one for each, and
// one more that looks for the largest value. (What the host takes for them is in expert_gemm_host_us.)
double starts_of_quantisation(const SoftwareProfile& profile, const Op& op, const Cost& cost) {
  if (profile.expert_gemms == ExpertGemms::grouped || op.phase == Phase::weight_gradient) return 0;
  double experts = 0;
  for (const Gemm& gemm : cost.gemms)
    if (gemm.count > 1 || op.attrs.has("filled")) experts = std::max(experts, gemm.count);
  return experts * (quantises_in_one_pass(profile.products) ? 1 : 2);
}

// A token's row of the embedding, or its gradient, where both are GEMMs with rows that are one at the token and zero
// elsewhere: tokens by vocabulary, which forward writes and both read.
std::optional<Gemm> gemm_of_lookup(const SoftwareProfile& profile, const Program& program, const Op& op) {
  if (!profile.embedding_gemm || op.def->lookup == TokenLookup::none) return std::nullopt;
  const bool forward = op.def->lookup == TokenLookup::rows;
  const Value& weight = program[op.inputs.back()];
  const Value& rows = program[forward ? op.outputs[0] : op.inputs[0]];
  double vocabulary = static_cast<double>(weight.local[0]), hidden = static_cast<double>(weight.local[1]);
  double tokens = static_cast<double>(rows.local.count()) / hidden;
  return forward ? Gemm{.rows = tokens, .columns = hidden, .depth = vocabulary}
                 : Gemm{.rows = vocabulary, .columns = hidden, .depth = tokens};
}

// Where another kernel than the GEMM adds a microbatch's gradient of a weight to those before it.
double accumulated_bytes(const SoftwareProfile& profile, const Program& program, const Op& op) {
  if (profile.accumulation_bytes == 0 || op.phase != Phase::weight_gradient || !accumulates(op)) return 0;
  bool several = std::ranges::any_of(program.schedule, [](const Action& action) { return action.microbatch > 0; });
  return several ? static_cast<double>(program[op.outputs[0]].local.count()) * profile.accumulation_bytes : 0;
}

// Gradients to, and weights from, the ranks that share optimizer state.
bool is_shard_message(const Program& program, const Message& message) {
  return any_differs_in_data(program.mesh, message.axes) &&
         (message.kind == Collective::reduce_scatter || message.kind == Collective::all_gather);
}

// The axes of a mesh whose ranks hold copies of ZeRO's shards (HSDP).
std::vector<std::string> axes_of_shard_copies(const Mesh& mesh) {
  std::vector<std::string> names;
  for (int axis : mesh.data_axes())
    if (!mesh.def(axis).zero_shards) names.push_back(mesh.name(axis));
  return names;
}

// Gradients of a rank's shards summed with those of their copies. Where all gradients are summed on every rank, that is
// one sum over shards and copies.
bool sums_over_shard_copies(const Program& program, const Op& op, const Message& message) {
  std::vector<std::string> copies = axes_of_shard_copies(program.mesh);
  return message.kind == Collective::all_reduce && !message.axes.empty() &&
         (op.phase == Phase::weight_gradient || op.phase == Phase::update) &&
         std::ranges::all_of(message.axes,
                             [&](const std::string& name) { return std::ranges::count(copies, name) > 0; });
}

// Our weights are packed (gate and up) and have no biases: nine tensors of a block where we have six.
constexpr double kTensorsPerValue = 1.5;

// The profile sets the width of the data it sends. The bytes of our Program are in our own width, so they are scaled.
double wire_bytes(const SoftwareProfile& profile, const Program& program, const Op& op, const Message& message) {
  double bytes = static_cast<double>(message.bytes.n);
  if (!any_differs_in_data(program.mesh, message.axes) || op.inputs.empty()) return bytes;
  const Value& value = program[op.inputs[0]];
  double held = size_of(value.dtype);
  bool reduces = message.kind == Collective::all_reduce || message.kind == Collective::reduce_scatter;
  if (reduces && (op.phase == Phase::weight_gradient || op.phase == Phase::update || value.kind == ValueKind::gradient))
    return bytes * profile.gradient_wire_bytes / held;
  if (message.kind == Collective::all_gather && value.kind == ValueKind::parameter)
    return bytes * profile.weight_wire_bytes / held;
  return bytes;
}

// A gather of forward that backward repeats for its gradients alone: whatever is computed again would need it in any
// case.
bool gathers_again(const Program& program, const Op& op, const Message& message) {
  if (op.phase != Phase::recompute || message.kind != Collective::all_gather ||
      !all_have_role(program.mesh, message.axes, AxisRole::tensor))
    return false;
  auto computes_again = [&](const Op& other) {
    return other.phase == Phase::recompute && std::ranges::count(other.inputs, op.outputs[0]) > 0;
  };
  return std::ranges::none_of(program.regions,
                              [&](const Region& region) { return std::ranges::any_of(region.ops, computes_again); });
}

// A machine that does not say what its host has cannot be planned for.
void require_host(const Machine& machine) {
  if (machine.host.has_link()) return;
  throw UserError({.place = machine.place,
                   .got = "the run offloads to the host, and the machine says nothing of it",
                   .expected = "a table [host] with link_gb_s, memory_gb_s and memory_gb",
                   .hint = "docs/machines.md has the fields; or leave offload out"});
}

void require_disks(const Machine& machine) {
  if (machine.host.nvme_bytes_per_s > 0) return;
  throw UserError({.place = machine.place,
                   .got = "the run keeps values on NVMe, and the machine says nothing of its disks",
                   .expected = "nvme_gb_s in the table [host]",
                   .hint = "docs/machines.md has the fields; or use offload.to = \"host\""});
}

// On a CPU whoever sends is a thread of the same cores: nothing travels beside compute for free.
SoftwareProfile on_machine(const Machine& machine, SoftwareProfile profile) {
  if (machine.device.kind == DeviceKind::cpu)
    profile.overlap_gradients = profile.overlap_gathers = profile.overlap_pipeline = profile.overlap_tensor =
        profile.overlap_tensor_backward = false;
  return profile;
}

}  // namespace

std::string not_hidden_text(std::string_view axes) {
  if (axes == kHostLink) return "copies not hidden, over the host link";
  if (axes == kNvme) return "reads and writes of NVMe, not hidden";
  return fmt::format("messages not hidden, along {}", axes);
}

Pricer::Pricer(const Machine& machine, const Efficiencies& efficiency, const SoftwareProfile& profile,
               double expert_imbalance, RankPlacement placement)
    : machine_(machine),
      efficiency_(efficiency),
      profile_(on_machine(machine, profile)),
      expert_imbalance_(expert_imbalance),
      placement_(std::move(placement)) {}

const RoutedRows& Pricer::routed(const Program& program) {
  auto found = routed_.find(program.stage_rank);
  if (found == routed_.end()) found = routed_.emplace(program.stage_rank, routed_rows(program)).first;
  const RoutedRows& rows = found->second;
  BUG_IF(!rows.held.empty() && rows.held.size() != program.values.size(),
         "a Pricer of a Program with {} values is given another one with {}: each run has its own", rows.held.size(),
         program.values.size());
  return rows;
}

GroupPlace Pricer::place_ranks(const Program& program, const std::vector<int>& ranks) const {
  return place_group(machine_, placement_.devices_of(program.mesh, ranks));
}

const GroupPlace& Pricer::group(const Program& program, const std::vector<std::string>& axes) {
  std::pair key(axes, program.stage_rank);
  auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  return groups_.emplace(key, place_ranks(program, group_of(program.mesh, own_rank(program), axes))).first->second;
}

Pricer::Weights Pricer::weights_of(const Program& program) {
  Weights& known = weights_[program.stage_rank];
  if (known.tensors > 0) return known;
  for (const Value& value : program.values) {
    if (value.kind != ValueKind::parameter) continue;
    known.bytes += static_cast<double>(value.local_bytes().n);
    known.tensors += kTensorsPerValue;
  }
  return known;
}

OpPrice Pricer::price_measured_message(const Program& program, const Message& message) {
  using enum Collective;
  OpPrice out{.kernels = 1,
              .bytes = static_cast<double>(message.bytes.n),
              .message = message.kind,
              .axes = axes_text(message.axes),
              .level = 0};
  double ranks = 2;
  if (message.between_stages()) {
    out.axes = pipeline_name(program.mesh);
    if (!message.stages.empty()) ranks = static_cast<double>(message.stages.size());
  } else {
    ranks = static_cast<double>(group(program, message.axes).ranks);
    if (ranks <= 1) return {};
  }
  out.seconds = message_seconds(machine_, message.kind, ranks, out.bytes);
  return out;
}

// Tokens on their way to the ranks of their experts, or back, in software that sends exact sizes: our own sends the
// rows that are reserved, and gathers where that is less. It sends before tensor-parallel ranks of an expert gather.
std::optional<OpPrice> Pricer::price_tokens_sent(const Program& program, const Op& op, const Message& message) {
  if (profile_.kernels == Kernels::ours || message.between_stages() || op.inputs.empty() || op.outputs.empty())
    return std::nullopt;
  const RoutedRows& rows = routed(program);
  if (rows.per_token == 0) return std::nullopt;
  bool experts = std::ranges::all_of(message.axes, [&](const std::string& name) {
    auto axis = program.mesh.find(name);
    return !axis || program.mesh.def(*axis).experts == ExpertRole::expert;
  });
  if (!experts) return std::nullopt;
  const GroupPlace& place = group(program, message.axes);
  if (place.ranks <= 1) return OpPrice{};
  double bytes = static_cast<double>(message.bytes.n), ranks = static_cast<double>(place.ranks);
  if (message.kind == Collective::all_to_all && rows.in(op.inputs[0]))
    bytes *= rows.filled;
  else if ((message.kind == Collective::all_gather && rows.tokens_in(op.outputs[0])) ||
           (message.kind == Collective::reduce_scatter && rows.tokens_in(op.inputs[0])))
    bytes *= rows.per_token / ranks;
  else
    return std::nullopt;
  bytes *= expert_imbalance_;
  OpPrice out{.kernels = 2, .bytes = bytes, .message = message.kind, .axes = axes_text(message.axes)};
  out.level = place.level, out.to_experts = true;
  double parts = static_cast<double>(program.mesh.ranks(ExpertRole::tensor));
  std::vector<std::string> tensor_axes;
  for (int axis : program.mesh.axes_with(ExpertRole::tensor)) tensor_axes.push_back(program.mesh.name(axis));
  Exchange exchange = even_exchange(bytes / parts, place);
  if (profile_.token_copies != TokenCopies::each_expert) {
    double to_ranks = one_copy_for_each(bytes / parts, rows, ranks);
    exchange = even_exchange(to_ranks, place);
    double inside = static_cast<double>(place.inside.front()), nodes = ranks / inside;
    if (profile_.token_copies == TokenCopies::each_node && nodes > 1)
      exchange = {.near_bytes = to_ranks * (inside - 1) / inside,
                  .far_bytes = one_copy_for_each(bytes / parts, rows, nodes) * (nodes - 1) / nodes};
  }
  out.seconds = exchange_seconds(machine_, efficiency_, exchange, place) + profile_.expert_wait_s;
  if (profile_.repeats_experts && op.phase == Phase::forward) out.seconds *= 2;
  if (parts > 1)
    out.seconds +=
        collective_seconds(machine_, efficiency_, Collective::all_gather, bytes, group(program, tensor_axes));
  return out;
}

OpPrice Pricer::price_message(const Program& program, const Op& op, const Message& message) {
  if (machine_.device.kind == DeviceKind::cpu) return price_measured_message(program, message);
  if (std::optional<OpPrice> sent = price_tokens_sent(program, op, message)) return *sent;
  if (profile_.keeps_gathered && gathers_again(program, op, message)) return {};
  using enum Collective;
  OpPrice out{.kernels = 1,
              .bytes = wire_bytes(profile_, program, op, message),
              .message = message.kind,
              .axes = axes_text(message.axes)};
  if (message.kind == send || message.kind == receive) {
    int self = own_rank(program);
    int peer = peer_of(program, coordinate_of(program.mesh, self), op).rank;
    GroupPlace place = place_ranks(program, {self, peer});
    out.axes = pipeline_name(program.mesh), out.level = place.level;
    out.seconds = collective_seconds(machine_, efficiency_, send, out.bytes, place);
    return out;
  }
  if (!message.stages.empty()) {
    std::vector<int> ranks;
    for (int64_t stage : message.stages)
      ranks.push_back(rank_at_stage(program, coordinate_of(program.mesh, own_rank(program)), stage));
    GroupPlace place = place_ranks(program, ranks);
    out.axes = pipeline_name(program.mesh), out.level = place.level;
    out.bytes *= static_cast<double>(profile_.gradient_wire_bytes) / size_of(program[op.inputs[0]].dtype);
    out.seconds = collective_seconds(machine_, efficiency_, Collective::all_reduce, out.bytes, place);
    return out;
  }
  Collective kind = message.kind;
  std::vector<std::string> axes = message.axes;
  if (profile_.zero_all_reduces) {
    if (sums_over_shard_copies(program, op, message)) return {};
    if (is_shard_message(program, message) && kind == Collective::reduce_scatter) {
      kind = Collective::all_reduce;
      std::ranges::copy(axes_of_shard_copies(program.mesh), std::back_inserter(axes));
    }
  }
  const GroupPlace& place = group(program, axes);
  out.level = place.level;
  if (place.ranks <= 1) return {};
  if (profile_.zero_broadcasts && is_shard_message(program, message) && kind == Collective::all_gather) {
    Weights weights = weights_of(program);
    double parts = std::min(static_cast<double>(place.ranks), weights.tensors);
    double each = collective_seconds(machine_, efficiency_, Collective::broadcast, weights.bytes / parts, place);
    out.seconds = parts * each * static_cast<double>(message.bytes.n) / weights.bytes;
    return out;
  }
  if (profile_.zero_coalesces && is_shard_message(program, message)) {
    out.seconds = coalesced_seconds(machine_, efficiency_, kind, out.bytes, place);
    return out;
  }
  // A part of a larger message has its part of that message's time.
  double together =
      any_differs_in_data(program.mesh, message.axes) ? std::max(out.bytes, profile_.bucket_bytes) : out.bytes;
  out.seconds =
      collective_seconds(machine_, efficiency_, kind, together, place) * (together > 0 ? out.bytes / together : 0);
  return out;
}

// All experts get as many tokens, but for the imbalance between ranks.
double Pricer::gemm_of_experts(Gemm gemm, const Op& op, double width, const std::string& dtype, OpPrice& out) const {
  constexpr double kStreams = 4;
  if (op.attrs.has("filled")) (op.phase == Phase::weight_gradient ? gemm.depth : gemm.rows) *= expert_imbalance_;
  // Tokens of an expert are no contiguous dim of a weight gradient's operands, or are filled up: no odd size is paid
  // for.
  constexpr double kFilledUpTo = 64;
  if (op.phase == Phase::weight_gradient) gemm.depth = kFilledUpTo * std::ceil(gemm.depth / kFilledUpTo);
  double times = 1, count = gemm.count;
  if (profile_.expert_gemms != ExpertGemms::grouped) {
    gemm.count = std::min(count, profile_.expert_gemms == ExpertGemms::streams ? kStreams : 1);
    times = count / gemm.count;
  }
  out.kernels += times * (times > 1 ? gemm.count : 1);
  if (profile_.expert_gemms != ExpertGemms::grouped) out.host_s += profile_.expert_gemm_host_s * count;
  if (profile_.repeats_experts && op.phase == Phase::forward) times *= 2;
  GemmQuery query{gemm, width, dtype};
  // Machines know the rates of our own kernel; of others' the profile tells what is known.
  bool own_kernel = profile_.kernels == Kernels::ours && profile_.expert_gemms == ExpertGemms::grouped;
  double seconds = own_kernel ? grouped_gemm_seconds(machine_, efficiency_, query, grouped_pass(op.phase))
                              : gemm_seconds(machine_, efficiency_, query);
  return times * seconds / profile_.expert_rate;
}

// Other software has as many rows as tokens, where we have as many as may come; it may pass over them more often.
double Pricer::streamed_bytes(const Program& program, const Op& op, double bytes) {
  const RoutedRows& rows = routed(program);
  if (profile_.kernels == Kernels::ours || rows.per_token == 0) return bytes;
  double all = 0, held = 0;
  for (const std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
    for (ValueId id : *ids) {
      double each = static_cast<double>(program[id].local_bytes().n);
      all += each, held += rows.in(id) ? each : 0;
    }
  if (held == 0) return bytes;
  bool eager = std::ranges::count(profile_.eager_ops, op.def->name) > 0;  // its own passes are known
  return bytes * (1 - held / all * (1 - rows.filled * expert_imbalance_)) * (eager ? 1 : profile_.expert_passes);
}

OpPrice Pricer::price_compute(const Program& program, const Op& op) {
  Cost cost = local_cost(program, op);
  OpPrice out{.flops = cost.flops.n, .bytes = static_cast<double>(cost.read.n + cost.written.n)};
  std::string dtype = compute_dtype(machine_, program, op, cost);
  const Products products = products_of(op, profile_);
  std::string_view units = quantised_units(products, machine_);
  bool quantised = !units.empty() && takes_quantised(program, op, cost);
  if (quantised) dtype = units;
  double bandwidth = machine_.device.memory_bytes_per_s * efficiency_.memory;
  bool made_before = !cost.gemms.empty() &&
                     std::ranges::all_of(cost.gemms, [](const Gemm& gemm) { return gemm.of == Gemm::Of::repeated; });
  if (made_before && profile_.keeps_logits) return {};
  double inner_bytes = cost.inner * (profile_.loss_eager    ? kLogitBytesStepByStep
                                     : profile_.loss_in_f32 ? kLogitBytesInF32
                                                            : kLogitBytes);
  if (!cost.gemms.empty() || cost.attention) {
    double width = operand_bytes(dtype);
    for (const Gemm& gemm : cost.gemms) {
      if (gemm.count > 1 || op.attrs.has("filled")) {
        out.seconds += gemm_of_experts(gemm, op, width, dtype, out);
        continue;
      }
      out.seconds += gemm_seconds(machine_, efficiency_, {gemm, width, dtype});
      out.kernels += 1;
    }
    if (quantised) {
      out.seconds += quantised_bytes(products, program, op) / bandwidth;
      out.kernels += kernels_of_quantisation(products, op.phase);
      out.seconds += starts_of_quantisation(profile_, op, cost) * efficiency_.kernel_s;
    }
    if (cost.attention) {
      AttentionTime time = attention_time(machine_, efficiency_, profile_, *cost.attention, dtype);
      out.seconds += time.seconds, out.kernels += time.kernels;
    }
    out.seconds += inner_bytes / bandwidth;
    out.kernels += cost.inner > 0 ? 3 : 0;
    if (double added = accumulated_bytes(profile_, program, op); added > 0) {
      out.seconds += added / bandwidth;
      out.bytes += added;
      out.kernels += 1;
    }
  } else if (std::optional<Gemm> gemm = gemm_of_lookup(profile_, program, op)) {
    constexpr double kOneHotBytes = 2;  // of an element, written once; the GEMM reads it
    bool forward = op.def->lookup == TokenLookup::rows;
    out.kernels = forward ? 2 : 1;
    out.seconds = gemm_seconds(machine_, efficiency_, {*gemm, 2, "bf16"});
    if (forward) out.seconds += kOneHotBytes * gemm->rows * gemm->depth / bandwidth;
  } else {
    Passes passes = passes_of(profile_, *op.def);
    double bytes = streamed_bytes(program, op, out.bytes) * passes.bytes;
    out.kernels = passes.kernels;
    out.seconds = bytes > 0 ? (bytes + kHalfRateBytes * passes.kernels) / bandwidth : 0;
  }
  out.seconds += out.kernels * efficiency_.kernel_s;
  if (is_routing(op)) {
    out.host_s += profile_.expert_host_s;
    out.host_waits = profile_.expert_counts_on_host && op.phase == Phase::forward;
  }
  return out;
}

std::optional<OpPrice> Pricer::price_measured(const Program& program, const Op& op) {
  Cost cost = local_cost(program, op);
  std::optional<double> seconds = measured_seconds(machine_, op.def->name, cost);
  if (!seconds) return std::nullopt;
  return OpPrice{.seconds = *seconds,
                 .kernels = 1,
                 .flops = cost.flops.n,
                 .bytes = static_cast<double>(cost.read.n + cost.written.n)};
}

OpPrice Pricer::price_space_copy(const Program& program, const Op& op) const {
  constexpr double kStart = 1e-5;  // of a copy: the engine is told, and tells
  OpPrice out{.kernels = 1, .axes = std::string(kHostLink)};
  out.bytes = static_cast<double>(program[op.outputs[0]].local_bytes().n);
  require_host(machine_);
  out.seconds = kStart + out.bytes / machine_.host.link_bytes_per_s;
  return out;
}

// The devices of a node that take part share its disks.
OpPrice Pricer::price_file_copy(const Program& program, const Op& op) const {
  constexpr double kStart = 1e-4;  // of a transfer: what a disk takes to answer
  OpPrice out{.axes = std::string(kNvme)};
  out.bytes = static_cast<double>(round_up(program[op.outputs[0]].local_bytes().n, kFileBlock));
  require_disks(machine_);
  out.seconds = kStart + out.bytes * static_cast<double>(machine_.devices_of_host(program.mesh.world_size())) /
                             machine_.host.nvme_bytes_per_s;
  return out;
}

// Host cores stream: the devices of a node that take part share the memory.
OpPrice Pricer::price_on_host(const Program& program, const Op& op) const {
  Cost cost = local_cost(program, op);
  OpPrice out{.flops = cost.flops.n, .bytes = static_cast<double>(cost.read.n + cost.written.n)};
  require_host(machine_);
  out.seconds = out.bytes * static_cast<double>(machine_.devices_of_host(program.mesh.world_size())) /
                machine_.host.memory_bytes_per_s;
  return out;
}

OpPrice Pricer::price(const Program& program, const Op& op) {
  for (const Alias& alias : op.def->alias_by_attrs ? op.def->alias_by_attrs(op.attrs) : op.def->alias)
    if (alias.rule == Alias::Rule::view) return {};  // nothing is done
  if (std::optional<Message> message = local_message(program, op)) return price_message(program, op, *message);
  if (is_file_copy(program, op)) return price_file_copy(program, op);
  if (machine_.device.kind != DeviceKind::cpu) {
    if (op.def->between_spaces) return price_space_copy(program, op);
    if (space_of(program, op) == MemorySpace::host) return price_on_host(program, op);
  }
  if (machine_.device.kind == DeviceKind::cpu)
    if (std::optional<OpPrice> price = price_measured(program, op)) return *price;
  return price_compute(program, op);
}

}  // namespace sextant
