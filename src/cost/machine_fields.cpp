#include "cost/machine_fields.h"

#include <variant>

namespace sextant {

namespace {
constexpr double kMega = 1e6, kGiga = 1e9, kTera = 1e12, kMebi = 1048576;
constexpr int64_t kMostDevices = 100'000'000;
constexpr Bounds kOversubscription{1, 1000};

std::vector<Field> topology_fields(SwitchedLinks&) {
  return {};
}

std::vector<Field> topology_fields(FatTree& tree) {
  return {{"leaf_devices", CountPlace{&tree.leaf_devices, 1, kMostDevices}},
          {"oversubscription", NumberPlace{&tree.oversubscription, kOversubscription}}};
}

std::vector<Field> topology_fields(RailOptimised& rail) {
  return {{"leaf_devices", CountPlace{&rail.leaf_devices, 0, kMostDevices}},
          {"oversubscription", NumberPlace{&rail.oversubscription, kOversubscription}},
          {"pxn", FlagPlace{&rail.pxn}}};
}

std::vector<Field> topology_fields(Dragonfly& fly) {
  return {{"group_devices", CountPlace{&fly.group_devices, 1, kMostDevices}},
          {"groups", CountPlace{&fly.groups, 2, 1'000'000}},
          {"global_gb_s", NumberPlace{&fly.global_bytes_per_s, {1e-3, 1e5}, kGiga}},
          {"adaptive_routing", FlagPlace{&fly.adaptive_routing}}};
}

std::vector<Field> topology_fields(Torus& torus) {
  return {{"shape", CountsPlace{&torus.shape, 2, 1'000'000}}};
}

}  // namespace

std::vector<Field> top_fields(Machine& machine) {
  return {{"name", TextPlace{&machine.name}}, {"about", TextPlace{&machine.about}}, {"date", TextPlace{&machine.date}}};
}

std::vector<Field> device_fields(Device& device, size_t& kind) {
  return {{"name", TextPlace{&device.name}},
          {"maker", TextPlace{&device.maker}},
          {"units", CountPlace{&device.units, 1, 100'000}},
          {"clock_mhz", NumberPlace{&device.clock_hz, {10, 20'000}, kMega}},
          {"flops_per_clock_and_unit", NumberPlace{&device.flops_per_clock_and_unit, {1, 1e8}}},
          {"memory_gb", NumberPlace{&device.memory_bytes, {0.1, 1e6}, kGiga}},
          {"memory_tb_s", NumberPlace{&device.memory_bytes_per_s, {0.001, 1e4}, kTera}},
          {"cache_mib", NumberPlace{&device.cache_bytes, {0, 1e6}, kMebi}},
          {"watts", NumberPlace{&device.watts, {0, 1e6}}},
          {"kind", WordPlace{&kind, {kDeviceKinds.begin(), kDeviceKinds.end()}}}};
}

Field peak_field(std::string_view type, double& flops_per_s) {
  return {std::string(type), NumberPlace{&flops_per_s, {0.001, 1e7}, kTera}};
}

Field gemm_rate_field(std::string_view type, double& rate) {
  return {std::string(type), NumberPlace{&rate, {0.3, 1.5}}};
}

std::vector<Field> node_fields(Machine& machine) {
  return {{"devices", CountPlace{&machine.devices_per_node, 1, 4096}}};
}

std::vector<Field> host_fields(HostMemory& host) {
  return {{"link_gb_s", NumberPlace{&host.link_bytes_per_s, {0.1, 1e5}, kGiga}},
          {"memory_gb_s", NumberPlace{&host.memory_bytes_per_s, {0.1, 1e6}, kGiga}},
          {"memory_gb", NumberPlace{&host.memory_bytes, {0.1, 1e7}, kGiga}},
          {"nvme_gb_s", NumberPlace{&host.nvme_bytes_per_s, {0.01, 1e5}, kGiga}},
          {"nvme_gb", NumberPlace{&host.nvme_bytes, {0.1, 1e8}, kGiga}}};
}

std::vector<Field> known_host_fields(HostMemory& host) {
  std::vector<Field> fields = host_fields(host);
  std::erase_if(fields, [](const Field& field) { return *std::get<NumberPlace>(field.is).to == 0; });
  return fields;
}

std::vector<Field> level_fields(Level& level, size_t& kind) {
  std::vector<Field> fields{{"devices", CountPlace{&level.devices, 0, kMostDevices}},
                            {"gb_s", NumberPlace{&level.link.bytes_per_s, {1e-3, 1e5}, kGiga}},
                            {"latency_us", NumberPlace{&level.link.latency_s, {0, 1e5}, 1, kMega}},
                            {"reduces_in_switch", FlagPlace{&level.reduces_in_switch}},
                            {"topology", WordPlace{&kind, {kTopologies.begin(), kTopologies.end()}}}};
  for (Field& field : std::visit([](auto& links) { return topology_fields(links); }, level.topology))
    fields.push_back(std::move(field));
  return fields;
}

std::vector<Field> attention_fields(AttentionRate& rate) {
  const Bounds share{0.01, 1};
  return {{"forward_64", NumberPlace{&rate.forward_64, share}},
          {"forward_128", NumberPlace{&rate.forward_128, share}},
          {"backward_64", NumberPlace{&rate.backward_64, share}},
          {"backward_128", NumberPlace{&rate.backward_128, share}}};
}

std::vector<Field> efficiency_fields(Efficiencies& efficiencies) {
  std::vector<Field> fields;
  for (const NamedEfficiency& named : named_efficiencies())
    fields.push_back({named.name, NumberPlace{&(efficiencies.*named.field), named.bounds}});
  return fields;
}

std::vector<Field> run_fields(Machine& machine) {
  return {{"context_gb", NumberPlace{&machine.context_bytes, {0, 1e3}, kGiga}},
          {"price_per_hour", NumberPlace{&machine.price_per_hour, {0, 1e5}}},
          {"mtbf_hours", NumberPlace{&machine.mtbf_hours, {0, 1e9}}},
          {"checkpoint_gb_s", NumberPlace{&machine.checkpoint_bytes_per_s, {0, 1e4}, kGiga}}};
}

}  // namespace sextant
