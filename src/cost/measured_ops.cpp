#include "cost/measured_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sextant {

namespace {

// The least time of work of a size, whatever its unit: only ratios of it count.
using Floor = std::function<double(const std::vector<double>& size)>;

// Measured over floor, from the ops nearest in size; the nearest decide.
std::optional<double> scaled(const Machine& machine, std::string_view name, const std::vector<double>& size,
                             const Floor& floor) {
  auto found = machine.ops.find(std::string(name));
  if (found == machine.ops.end()) return std::nullopt;
  double weights = 0, sum = 0;
  for (const MeasuredOp& measured : found->second) {
    if (measured.size.size() != size.size()) continue;
    double away = 0;
    for (size_t i = 0; i < size.size(); ++i)
      away += std::abs(std::log(std::max(size[i], 1.0) / std::max(measured.size[i], 1.0)));
    double weight = 1 / (1e-4 + away * away * away);
    weights += weight;
    sum += weight * std::log(measured.seconds / floor(measured.size));
  }
  if (weights == 0) return std::nullopt;
  return floor(size) * std::exp(sum / weights);
}

double product_of(const std::vector<double>& size) {
  double product = 1;
  for (double part : size) product *= std::max(part, 1.0);
  return product;
}

}  // namespace

std::vector<double> size_of_op(const Cost& cost) {
  if (cost.attention) {
    const AttentionWork& work = *cost.attention;
    // Heads of one width were measured; others count as the one that has the same work.
    double width = (work.head_dim + work.width_of_values()) / 2;
    return {work.batch * work.heads, work.queries, work.keys, width};
  }
  if (!cost.gemms.empty()) {
    const Gemm& gemm = cost.gemms[0];
    return {gemm.count * gemm.rows, gemm.columns, gemm.depth};
  }
  return {static_cast<double>(cost.read.n + cost.written.n)};
}

std::optional<double> measured_seconds(const Machine& machine, std::string_view op, const Cost& cost) {
  std::vector<double> size = size_of_op(cost);
  double start = machine.efficiency().kernel_s;
  double rate = cost.attention || !cost.gemms.empty() ? machine.peak("fp32") * machine.efficiency().product / 2
                                                      : machine.device.memory_bytes_per_s * machine.efficiency().memory;
  return scaled(machine, op, size, [&](const std::vector<double>& of) { return start + product_of(of) / rate; });
}

double message_seconds(const Machine& machine, Collective kind, double ranks, double bytes) {
  const Link& link = machine.levels.front().link;
  auto floor = [&](const std::vector<double>& of) { return link.latency_s * of[0] + of[1] / link.bytes_per_s; };
  return scaled(machine, name_of(kind), {ranks, bytes}, floor).value_or(floor({ranks, bytes}));
}

}  // namespace sextant
