// Fields of each table in a machine's file, for reading and writing alike. Inside cost/ only.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "cost/toml_fields.h"

namespace sextant {

constexpr std::array<std::string_view, 7> kPeakTypes{"bf16", "fp16", "tf32", "fp32", "fp8", "int8", "fp4"};
// Tables whose figures must say where they come from, under these names in [source].
constexpr std::array<std::string_view, 9> kSourced{"device",           "level", "attention", "efficiency", "products",
                                                   "grouped_products", "ops",   "run",       "host"};
// Keys of [grouped_products.TYPE], in the order of GroupedPass.
constexpr std::array<std::string_view, 3> kGroupedPasses{"forward", "input_gradient", "weight_gradient"};

std::vector<Field> top_fields(Machine& machine);
// `kind` holds the place of the device's kind among kDeviceKinds while the fields live.
constexpr std::array<std::string_view, 2> kDeviceKinds{"accelerator", "cpu"};
std::vector<Field> device_fields(Device& device, size_t& kind);
Field peak_field(std::string_view type, double& flops_per_s);
Field gemm_rate_field(std::string_view type, double& rate);
std::vector<Field> node_fields(Machine& machine);
std::vector<Field> host_fields(HostMemory& host);
std::vector<Field> known_host_fields(HostMemory& host);  // those that are written
// `kind` holds the place of its topology among kTopologies while the fields live; those of that topology come last.
std::vector<Field> level_fields(Level& level, size_t& kind);
std::vector<Field> attention_fields(AttentionRate& rate);
std::vector<Field> efficiency_fields(Efficiencies& efficiencies);
std::vector<Field> run_fields(Machine& machine);

}  // namespace sextant
