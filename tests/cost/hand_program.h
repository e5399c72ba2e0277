// Programs written by hand for tests of prices and of the simulator, and a machine whose times can be worked out on
// paper: memory and links move 1 MB/s after their efficiencies, a kernel costs 0.125 s besides its bytes, nodes have
// two devices.
#pragma once

#include "cost/price.h"
#include "ir/op_def.h"
#include "ops/ops.h"

namespace sextant {

constexpr double kMega = 1e6;
// Costs of a streaming kernel besides its own bytes: 2 MB for a device that is not filled, and its start.
constexpr double kKernelSeconds = 0.125, kUnfilledSeconds = 2;

inline Machine machine_on_paper() {
  Machine machine;
  machine.device = {
      .units = 4, .peaks = {{"bf16", 8e12}, {"fp32", 4e12}}, .memory_bytes = 1e10, .memory_bytes_per_s = 2 * kMega};
  machine.devices_per_node = 2;
  machine.levels = {{.name = "node", .devices = 2, .link = {2 * kMega, 0}},
                    {.name = "cluster", .devices = 0, .link = {4 * kMega, 0}}};
  machine.tables = {.product = 0.5,
                    .attention = 0.5,
                    .memory = 0.5,
                    .near_link = 0.5,
                    .far_link = 0.25,
                    .near_overlap = 0.8,
                    .far_overlap = 0.8,
                    .kernel_s = kKernelSeconds,
                    .imbalance = 1.25};
  return machine;
}

// A message between two devices of a node, or of two: NCCL's latency and the bytes.
inline double near_message(double megabytes) {
  return 8.4e-6 + megabytes;
}
inline double far_message(double megabytes) {
  return 20e-6 + megabytes;
}
// A long all-reduce of two ranks around a ring in the Simple protocol: each rank sends as many bytes as there are.
inline double near_all_reduce(double megabytes) {
  return (8.4 + 2 * 3.4) * 1e-6 + megabytes;
}
inline double far_all_reduce(double megabytes) {
  return (8.4 + 2 * 14) * 1e-6 + megabytes;
}

// A streaming kernel that reads `bytes` and has 7 flops, under any name.
inline OpDef streaming_op(std::string_view name) {
  OpDef def{.name = name, .attrs = {"bytes"}};
  if (const OpDef* known = find_op(name)) def.passes = known->passes;
  def.cost = [](const Attrs& attrs, auto, auto) { return Cost{.flops = {7}, .read = {attrs.integer("bytes")}}; };
  return def;
}

class HandProgram {
 public:
  HandProgram(Mesh mesh, int stage_rank) {
    program.mesh = std::move(mesh);
    program.stage_rank = stage_rank;
  }

  // Of f32, unless said otherwise; the rank has all of it.
  ValueId value(std::string path, int64_t bytes, ValueKind kind = ValueKind::activation, DType dtype = DType::f32) {
    auto id = static_cast<ValueId>(program.values.size());
    std::vector<int64_t> dims{bytes / size_of(dtype)};
    program.values.push_back({.id = id,
                              .path = std::move(path),
                              .kind = kind,
                              .dtype = dtype,
                              .shape = GlobalShape(dims),
                              .layout = {},
                              .init = {},
                              .stored = {},
                              .local = LocalShape(dims)});
    return id;
  }

  Region& region(RegionKind kind) {
    for (Region& each : program.regions)
      if (each.kind == kind) return each;
    return program.regions.emplace_back(Region{.kind = kind, .chunk = 0, .ops = {}});
  }

  Op& add(RegionKind kind, const OpDef& def, std::string path, Attrs attrs, std::vector<ValueId> inputs = {},
          std::vector<ValueId> outputs = {}) {
    return region(kind).ops.emplace_back(Op{.def = &def,
                                            .attrs = std::move(attrs),
                                            .inputs = std::move(inputs),
                                            .outputs = std::move(outputs),
                                            .path = std::move(path),
                                            .where = {}});
  }

  // A kernel that takes `seconds` on the machine above.
  Op& work(RegionKind kind, const OpDef& def, std::string path, double seconds) {
    auto bytes = static_cast<int64_t>((seconds - kKernelSeconds - kUnfilledSeconds) * kMega);
    return add(kind, def, std::move(path), {{"bytes", bytes}});
  }

  Op& all_reduce(RegionKind kind, std::string path, const std::string& axes, double megabytes) {
    ValueId x = value(path + ".x", static_cast<int64_t>(megabytes * kMega)),
            y = value(path + ".y", static_cast<int64_t>(megabytes * kMega));
    return add(kind, ops::redistribute, std::move(path),
               {{"transfer", std::string("all_reduce")}, {"axes", std::vector<std::string>{axes}}}, {x}, {y});
  }

  Program program;
};

}  // namespace sextant
