#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/environment.h"
#include "bench/save.h"
#include "cost/machine_file.h"

namespace sextant {

namespace {

void lay_products(Machine& machine, const BenchReport& report) {
  for (const BenchResult& r : report.results) {
    if (r.kind != "gemm" || r.size.size() != 3 || r.samples.empty()) continue;
    MeasuredProduct measured{r.size[0], r.size[1], r.size[2], r.seconds().median, r.dtype};
    std::erase_if(machine.products, [&](const MeasuredProduct& old) {
      return old.dtype == measured.dtype && old.rows == measured.rows && old.columns == measured.columns &&
             old.depth == measured.depth;
    });
    machine.products.push_back(measured);
  }
}

// The bounds of an efficiency are physical: what lies outside them was not measured well.
double bounded(double Efficiencies::*field, double value) {
  for (const NamedEfficiency& named : named_efficiencies())
    if (named.field == field) return std::clamp(value, named.bounds.least, named.bounds.most);
  return value;
}

void lay_memory(Machine& machine, const BenchReport& report) {
  double best = 0;
  for (const BenchResult& r : report.results)
    if (r.kind == "memory" && r.name == "copy") best = std::max(best, r.bytes_per_s());
  if (best == 0) return;
  machine.tables.memory = bounded(&Efficiencies::memory, best / machine.device.memory_bytes_per_s);
  if (machine.fitted) machine.fitted->memory = machine.tables.memory;
}

// Rates of the table are limits for long sequences: at length s, s / (s + 700) of them is reached.
void lay_attention(Machine& machine, const BenchReport& report) {
  AttentionRate rate = machine.attention.contains("cudnn") ? machine.attention["cudnn"] : AttentionRate{};
  bool any = false;
  for (const BenchResult& r : report.results) {
    if (r.kind != "attention" || r.size.size() != 4 || machine.peak(r.dtype) <= 0) continue;
    double length = std::sqrt(r.size[1] * r.size[2]),
           share = r.flops_per_s() / machine.peak(r.dtype) * (length + 700) / length;
    bool backward = r.name == "attention_backward", wide = r.size[3] >= 128;
    double& place =
        backward ? (wide ? rate.backward_128 : rate.backward_64) : (wide ? rate.forward_128 : rate.forward_64);
    place = std::clamp(any ? std::max(place, share) : share, 0.01, 1.0);
    any = true;
  }
  if (any && rate.forward_64 > 0 && rate.forward_128 > 0 && rate.backward_64 > 0 && rate.backward_128 > 0)
    machine.attention["cudnn"] = rate;
}

void lay_ops(Machine& machine, const BenchReport& report) {
  if (machine.device.kind != DeviceKind::cpu) return;
  for (const BenchResult& r : report.results) {
    if (r.kind != "ops" || r.size.empty() || r.samples.empty()) continue;
    std::vector<MeasuredOp>& known = machine.ops[r.name];
    std::erase_if(known, [&](const MeasuredOp& old) { return old.size == r.size; });
    known.push_back({r.size, r.seconds().median});
  }
}

}  // namespace

void lay_over(Machine& machine, const BenchReport& report) {
  lay_products(machine, report);
  lay_memory(machine, report);
  lay_attention(machine, report);
  lay_ops(machine, report);
  machine.date = today();
  std::string source = "measured by sextant bench, " + machine.date;
  for (const auto& [name, value] : report.environment)
    if (name == "device" || name == "driver" || name == "cuBLASLt" || name == "cuDNN")
      source += fmt::format("; {} {}", name, value);
  auto has = [&](const char* kind) {
    return std::any_of(report.results.begin(), report.results.end(),
                       [&](const BenchResult& r) { return r.kind == kind; });
  };
  if (has("gemm")) machine.sources["products"] = source;
  if (has("memory")) machine.sources["efficiency"] = source + "; the rest as before: " + machine.sources["efficiency"];
  if (has("attention")) machine.sources["attention"] = source;
  if (has("ops") && machine.device.kind == DeviceKind::cpu) machine.sources["ops"] = source;
}

std::optional<Machine> known_machine_with(const std::string& device) {
  for (const std::string& name : known_machines()) {
    Machine machine = load_machine(name);
    std::string model = machine.device.name.substr(0, machine.device.name.find(' '));
    if (!model.empty() && device.find(model) != std::string::npos && machine.device.maker == "NVIDIA") return machine;
  }
  return std::nullopt;
}

}  // namespace sextant
