#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/environment.h"
#include "bench/op_samples.h"
#include "bench/save.h"
#include "cost/machine_file.h"
#include "cost/measured_ops.h"

namespace sextant {

namespace {

void merge_gemms(Machine& machine, const BenchReport& report) {
  for (const BenchResult& r : report.results) {
    if (r.kind != "gemm" || r.size.size() != 3 || r.samples.empty()) continue;
    MeasuredGemm measured{r.size[0], r.size[1], r.size[2], r.seconds().median, r.dtype};
    std::erase_if(machine.gemms, [&](const MeasuredGemm& old) {
      return old.dtype == measured.dtype && old.rows == measured.rows && old.columns == measured.columns &&
             old.depth == measured.depth;
    });
    machine.gemms.push_back(measured);
  }
}

GroupedPass pass_of(const std::string& op) {
  if (op.ends_with("_weight_gradient")) return GroupedPass::weight_gradient;
  return op.ends_with("_input_gradient") ? GroupedPass::input_gradient : GroupedPass::forward;
}

void put_op(Machine& machine, const std::string& name, const MeasuredOp& measured) {
  std::vector<MeasuredOp>& known = machine.ops[name];
  std::erase_if(known, [&](const MeasuredOp& old) { return old.size == measured.size; });
  known.push_back(measured);
}

void merge_grouped_gemms(Machine& machine, const BenchReport& report) {
  for (const BenchResult& r : report.results) {
    if (r.kind != "grouped gemm" || r.size.size() != 4 || r.samples.empty()) continue;
    double experts = r.size[0], rows = r.size[1], columns = r.size[2], depth = r.size[3];
    if (machine.device.kind == DeviceKind::cpu) {  // as size_of_op has it
      put_op(machine, r.name, {{experts * rows, columns, depth}, r.seconds().median});
      continue;
    }
    MeasuredGroupedGemm measured{pass_of(r.name), experts, rows, columns, depth, r.seconds().median, r.dtype};
    auto same = [&](MeasuredGroupedGemm old) {
      old.seconds = measured.seconds;
      return old == measured;
    };
    std::erase_if(machine.grouped_gemms, same);
    machine.grouped_gemms.push_back(measured);
  }
}

// The bounds of an efficiency are physical: what lies outside them was not measured well.
double bounded(double Efficiencies::*field, double value) {
  for (const NamedEfficiency& named : named_efficiencies())
    if (named.field == field) return std::clamp(value, named.bounds.least, named.bounds.most);
  return value;
}

void merge_memory(Machine& machine, const BenchReport& report) {
  double best = 0;
  for (const BenchResult& r : report.results)
    if (r.kind == "memory" && r.name == "copy") best = std::max(best, r.bytes_per_s());
  if (best == 0) return;
  machine.tables.memory = bounded(&Efficiencies::memory, best / machine.device.memory_bytes_per_s);
  if (machine.fitted) machine.fitted->memory = machine.tables.memory;
}

// The slower way of the link, for what is kept on the host goes both.
void merge_host(Machine& machine, const BenchReport& report) {
  double to_device = 0, to_host = 0, memory = 0;
  for (const BenchResult& r : report.results) {
    if (r.kind == "host link") (r.name == "to host" ? to_host : to_device) = r.bytes_per_s();
    if (r.kind == "host memory") memory = r.bytes_per_s();
  }
  if (to_device > 0 && to_host > 0) machine.host.link_bytes_per_s = std::min(to_device, to_host);
  if (memory > 0) machine.host.memory_bytes_per_s = memory;
}

// Rates of the table are limits for long sequences: at length s, s / (s + 700) of them is reached.
void merge_attention(Machine& machine, const BenchReport& report) {
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

void merge_ops(Machine& machine, const BenchReport& report) {
  if (machine.device.kind != DeviceKind::cpu) return;
  for (const BenchResult& r : report.results) {
    if (r.kind != "ops" || r.size.empty() || r.samples.empty()) continue;
    put_op(machine, r.name, {r.size, r.seconds().median});
  }
}

void merge_launch(Machine& machine, const BenchReport& report) {
  for (const BenchResult& r : report.results) {
    if (r.kind != "launch" || r.samples.empty()) continue;
    // The fitted value stays: it comes from whole steps, which launch many kernels at a time.
    machine.tables.kernel_s = bounded(&Efficiencies::kernel_s, r.seconds().median);
  }
}

// As messages are called among a machine's ops; nothing for what training does not send.
std::string_view message_name(Collective op) {
  return op == Collective::broadcast ? "" : name_of(op);
}

// Seconds of a message without waits for other ranks, in the form of measured ops: the simulator adds the waiting.
std::map<std::string, std::vector<MeasuredOp>> messages_of(const CommReport& report) {
  OpSamples samples;
  for (const CommRow& row : report.rows) {
    std::string name(message_name(row.op));
    // A copy before an all-reduce is no part of the message, and two groups at once get in each other's way.
    bool alone = row.together == 1 && (row.place == CommPlace::in || !can_be(row.op, CommPlace::in));
    if (!name.empty() && alone && row.wrong == 0)
      for (double seconds : row.least) samples.add(name, {static_cast<double>(row.ranks), row.bytes}, seconds);
  }
  for (const RankLink& link : report.links) {
    for (double seconds : link.pings) samples.add("send", {2, kPingBytes}, seconds);
    for (double seconds : link.transfers) samples.add("send", {2, link.large}, seconds);
  }
  return samples.table();
}

void merge_links(Machine& machine, const CommReport& report) {
  LinkProfile within = profile_of(report.links, LinkKind::within_host),
              between = profile_of(report.links, LinkKind::between_hosts);
  if (within.links > 0) machine.levels.front().link = {within.bytes_per_s, within.latency_s};
  if (between.links == 0) return;
  if (machine.levels.size() == 1) {
    machine.levels.front().devices = machine.devices_per_node;
    machine.levels.push_back({.name = "machines", .devices = 0, .link = {}});
  }
  machine.levels.back().link = {between.bytes_per_s, between.latency_s};
}

// The bandwidth that a ring over all ranks reached, of what the links could carry.
void merge_link_efficiency(Machine& machine, const CommReport& report) {
  double bus = 0;
  for (const CommRow& row : report.rows)
    if (row.ranks == report.ranks && row.wrong == 0 &&
        (row.op == Collective::all_gather || row.op == Collective::reduce_scatter))
      bus = std::max(bus, bus_bandwidth(row.op, row.ranks, row.bytes, quantile_of(row.seconds, 0.5)));
  if (bus == 0) return;
  bool near = report.hosts == 1;
  double links = near ? machine.levels.front().link.bytes_per_s
                      : machine.levels.back().link.bytes_per_s * report.ranks / report.hosts;
  double Efficiencies::*field = near ? &Efficiencies::near_link : &Efficiencies::far_link;
  machine.tables.*field = bounded(field, bus / links);
  if (machine.fitted) (*machine.fitted).*field = machine.tables.*field;
}

}  // namespace

namespace {

// The source of the new measurements. The other figures keep the source from before any measurement.
void put_source(Machine& machine, const std::string& table, const std::string& source) {
  constexpr std::string_view kRest = "; the rest as before: ";
  std::string& place = machine.sources[table];
  size_t rest = place.find(kRest);
  place = source + std::string(kRest) + (rest == place.npos ? place : place.substr(rest + kRest.size()));
}

}  // namespace

void merge_message_times(Machine& machine, const CommReport& report) {
  machine.date = today();
  std::string source = fmt::format("measured by sextant bench comm, {}, {} ranks on {} machine{}", machine.date,
                                   report.ranks, report.hosts, report.hosts == 1 ? "" : "s");
  if (machine.device.kind != DeviceKind::cpu) {
    merge_link_efficiency(machine, report);
    put_source(machine, "efficiency", source);
    return;
  }
  merge_links(machine, report);
  for (const auto& [name, measured] : messages_of(report))
    for (const MeasuredOp& each : measured) put_op(machine, name, each);
  machine.sources["level"] = source;
  put_source(machine, "ops", source);
}

void merge_storage(Machine& machine, const BenchReport& report) {
  for (const BenchResult& r : report.results) {
    if (r.kind != "storage" || r.name != "checkpoint write" || r.size.size() != 2 || r.bytes_per_s() <= 0) continue;
    machine.checkpoint_bytes_per_s = r.bytes_per_s() / r.size[1];
    machine.date = today();
    put_source(machine, "run", fmt::format("checkpoints measured by sextant bench storage, {}, {}", today(), r.shape));
  }
}

void merge_into_machine(Machine& machine, const BenchReport& report) {
  merge_gemms(machine, report);
  merge_grouped_gemms(machine, report);
  merge_memory(machine, report);
  merge_host(machine, report);
  merge_attention(machine, report);
  merge_ops(machine, report);
  merge_launch(machine, report);
  machine.date = today();
  std::string source = "measured by sextant bench, " + machine.date;
  for (const auto& [name, value] : report.environment)
    if (name == "device" || name == "driver" || name == "cuBLASLt" || name == "cuDNN")
      source += fmt::format("; {} {}", name, value);
  auto has = [&](const char* kind) {
    return std::any_of(report.results.begin(), report.results.end(),
                       [&](const BenchResult& r) { return r.kind == kind; });
  };
  bool cpu = machine.device.kind == DeviceKind::cpu;
  if (has("gemm")) machine.sources["products"] = source;
  if (has("grouped gemm") && !cpu) {
    bool others = machine.sources.contains("grouped_products");
    others ? put_source(machine, "grouped_products", source) : void(machine.sources["grouped_products"] = source);
  }
  if (has("memory") || has("launch")) put_source(machine, "efficiency", source);
  if (has("host link") && has("host memory")) machine.sources["host"] = source;
  if (has("attention")) machine.sources["attention"] = source;
  if ((has("ops") || has("grouped gemm")) && cpu) machine.sources["ops"] = source;
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
