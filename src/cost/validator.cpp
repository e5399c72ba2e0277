#include "cost/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "cost/machine_fields.h"

namespace sextant {

namespace {

using Problems = std::vector<std::string>;

bool within(double value, double wanted, double share) {
  return std::abs(value - wanted) <= share * wanted;
}

// The peak that clock, units and their rate give is the one that is claimed, of the type that flops_per_clock_and_unit
// is for.
void check_peak(const Device& device, Problems& problems) {
  constexpr double kRounding = 0.03;
  double made = device.clock_hz * static_cast<double>(device.units) * device.flops_per_clock_and_unit;
  auto reference = device.peaks.find("bf16");
  if (reference == device.peaks.end()) reference = device.peaks.find("fp16");
  if (reference == device.peaks.end()) {
    problems.push_back("neither bf16 nor fp16 has a peak");
  } else if (!within(reference->second, made, kRounding)) {
    problems.push_back(fmt::format("the {} peak is {:.1f} TFLOPS, but {:.0f} MHz x {} units x {:.0f} gives {:.1f}",
                                   reference->first, reference->second / 1e12, device.clock_hz / 1e6, device.units,
                                   device.flops_per_clock_and_unit, made / 1e12));
  }
}

// Narrower types are not slower, and each step at most doubles what the one before reaches, but for the units' first.
void check_types(const Device& device, Problems& problems) {
  constexpr std::array<const char*, 5> kNarrowing{"fp32", "tf32", "bf16", "fp8", "fp4"};
  const char* before = nullptr;
  for (const char* type : kNarrowing) {
    auto found = device.peaks.find(type);
    if (found == device.peaks.end()) continue;
    double peak = found->second, wider = before ? device.peaks.at(before) : 0;
    if (peak < wider) problems.push_back(fmt::format("{} is slower than {}", type, before));
    bool halves = std::string_view(type) == "fp8" || std::string_view(type) == "fp4";
    if (halves && before && peak > 4.05 * wider)
      problems.push_back(fmt::format("{} is {:.1f} times {}: with sparsity?", type, peak / wider, before));
    before = type;
  }
}

void check_memory(const Device& device, Problems& problems) {
  double sweep_s = device.memory_bytes / device.memory_bytes_per_s;
  if (!(sweep_s > 0.008 && sweep_s < 0.1))
    problems.push_back(
        fmt::format("reading the whole memory would take {:.1f} ms; accelerators need 8 to 100", sweep_s * 1e3));
  double most = 0;
  for (const auto& [type, peak] : device.peaks)
    if (type == "bf16" || type == "fp16") most = std::max(most, peak);
  double flops_per_byte = most / device.memory_bytes_per_s;
  if (most > 0 && !(flops_per_byte > 30 && flops_per_byte < 1000))
    problems.push_back(
        fmt::format("{:.0f} flops for each byte of memory bandwidth; accelerators have 30 to 1000", flops_per_byte));
}

// GB/s one way: NVLink 1 to 6, what was cut from 3 and 4 for export, a bridge of 3, PCIe 3 to 6 with 16 lanes.
void check_nvidia_link(const Machine& machine, Problems& problems) {
  constexpr std::array kKnown{80.0, 150.0, 300.0, 450.0, 900.0, 1800.0, 200.0, 16.0, 31.0, 63.0, 121.0};
  if (machine.device.maker != "NVIDIA" || machine.levels.empty()) return;
  double gb_s = machine.levels.front().link.bytes_per_s / 1e9;
  if (std::none_of(kKnown.begin(), kKnown.end(), [&](double known) { return within(gb_s, known, 0.03); }))
    problems.push_back(
        fmt::format("level.{} has {:.1f} GB/s; NVLink has 80, 150, 300, 450, 900 or 1800 one way (200 where cut), PCIe "
                    "16, 31, 63 or 121",
                    machine.levels.front().name, gb_s));
}

void check_levels(const Machine& machine, Problems& problems) {
  if (machine.levels.empty()) problems.push_back("there are no levels");
  for (size_t l = 0; l < machine.levels.size(); ++l) {
    const Level& level = machine.levels[l];
    bool last = l + 1 == machine.levels.size();
    if (last != (level.devices == 0))
      problems.push_back(fmt::format(
          "level.{}: {}", level.name,
          last ? "the last holds everything and names no number of devices" : "only the last is without a limit"));
    if (!(level.link.bytes_per_s > 0)) problems.push_back(fmt::format("level.{} has no bandwidth", level.name));
    if (l == 0) continue;
    const Level& inner = machine.levels[l - 1];
    if (level.devices != 0 &&
        (level.devices <= inner.devices || level.devices % std::max<int64_t>(inner.devices, 1) != 0))
      problems.push_back(fmt::format("level.{} holds {} devices, which is not a multiple of the {} of level.{}",
                                     level.name, level.devices, inner.devices, inner.name));
    if (level.link.bytes_per_s > inner.link.bytes_per_s)
      problems.push_back(fmt::format("level.{} is faster than level.{} inside it", level.name, inner.name));
    if (level.link.latency_s < inner.link.latency_s)
      problems.push_back(fmt::format("level.{} answers sooner than level.{} inside it", level.name, inner.name));
  }
}

void check_attention(const Machine& machine, Problems& problems) {
  for (const auto& [kernel, rate] : machine.attention) {
    for (double share : {rate.forward_64, rate.forward_128, rate.backward_64, rate.backward_128})
      if (!(share > 0.05 && share < 0.95))
        problems.push_back(
            fmt::format("attention.{} reaches {} of the peak; kernels reach 0.05 to 0.95", kernel, share));
    if (rate.backward_64 > 1.05 * rate.forward_64 || rate.backward_128 > 1.05 * rate.forward_128)
      problems.push_back(fmt::format("attention.{} is faster backward than forward", kernel));
    if (rate.forward_128 < rate.forward_64)
      problems.push_back(fmt::format("attention.{} is slower with heads of 128 than of 64", kernel));
  }
}

void check_efficiencies(const Machine& machine, Problems& problems) {
  constexpr double kMostAbove = 1.1;  // what kernels were published to reach, plus luck
  auto inside = [&](const Efficiencies& efficiencies, const char* table) {
    for (const NamedEfficiency& named : named_efficiencies()) {
      double value = efficiencies.*named.field;
      if (!(value >= named.bounds.least && value <= named.bounds.most))
        problems.push_back(fmt::format("{}.{} is {}, outside {} to {}", table, named.name, value, named.bounds.least,
                                       named.bounds.most));
    }
  };
  inside(machine.tables, "efficiency");
  auto check_fit = [&](const std::optional<Efficiencies>& fitted, const std::string& on, const char* table) {
    if (!fitted) return;
    inside(*fitted, table);
    if (on.empty()) problems.push_back(fmt::format("{} does not say what it was fitted on", table));
    for (double Efficiencies::*share :
         {&Efficiencies::product, &Efficiencies::memory, &Efficiencies::near_link, &Efficiencies::far_link}) {
      double reached = *fitted.*share, published = machine.tables.*share;
      if (reached > kMostAbove * published)
        problems.push_back(
            fmt::format("a fit reaches {:.2f} where kernels were published to reach {:.2f}", reached, published));
    }
  };
  check_fit(machine.fitted, machine.fitted_on, "fitted");
  check_fit(machine.fitted_experts, machine.fitted_experts_on, "fitted_experts");
}

void check_gemms(const Machine& machine, Problems& problems) {
  for (const MeasuredGemm& p : machine.gemms) {
    double reached = 2 * p.rows * p.columns * p.depth / p.seconds, peak = machine.peak(p.dtype);
    if (!(reached > 0 && reached <= peak))
      problems.push_back(fmt::format("products.{}: {} x {} x {} in {:.1f} us is {:.1f} TFLOPS of {:.1f}", p.dtype,
                                     p.rows, p.columns, p.depth, p.seconds * 1e6, reached / 1e12, peak / 1e12));
  }
}

void check_grouped_gemms(const Machine& machine, Problems& problems) {
  for (const MeasuredGroupedGemm& g : machine.grouped_gemms) {
    double reached = g.flops() / g.seconds, peak = machine.peak(g.dtype);
    if (!(reached > 0 && reached <= peak))
      problems.push_back(fmt::format("grouped_products.{}: {} of {} x {} x {} in {:.1f} us are {:.1f} TFLOPS of {:.1f}",
                                     g.dtype, g.experts, g.rows, g.columns, g.depth, g.seconds * 1e6, reached / 1e12,
                                     peak / 1e12));
  }
}

// A source without a year cannot be looked up, nor be found stale.
bool has_year(const std::string& text) {
  for (size_t i = 0; i + 4 <= text.size(); ++i) {
    bool century = text.compare(i, 2, "20") == 0;
    bool rest =
        std::isdigit(static_cast<unsigned char>(text[i + 2])) && std::isdigit(static_cast<unsigned char>(text[i + 3]));
    bool alone = i + 4 == text.size() || !std::isdigit(static_cast<unsigned char>(text[i + 4]));
    if (century && rest && alone) return true;
  }
  return false;
}

void check_sources(const Machine& machine, Problems& problems) {
  auto is_used = [&](std::string_view table) {
    if (table == "attention") return !machine.attention.empty();
    if (table == "products") return !machine.gemms.empty();
    if (table == "grouped_products") return !machine.grouped_gemms.empty();
    if (table == "ops") return !machine.ops.empty();
    if (table == "host") return machine.host != HostMemory{};
    if (table == "run")
      return machine.price_per_hour > 0 || machine.mtbf_hours > 0 || machine.checkpoint_bytes_per_s > 0;
    return true;
  };
  for (std::string_view table : kSourced) {
    if (!is_used(table)) continue;
    auto found = machine.sources.find(std::string(table));
    if (found == machine.sources.end())
      problems.push_back(fmt::format("source.{} is not given", table));
    else if (!has_year(found->second))
      problems.push_back(fmt::format("source.{} names no year", table));
  }
  if (!has_year(machine.date)) problems.push_back("date is not given");
}

}  // namespace

std::vector<std::string> problems_of(const Machine& machine) {
  Problems problems;
  if (machine.device.kind == DeviceKind::accelerator) {
    check_peak(machine.device, problems);
    check_types(machine.device, problems);
    check_memory(machine.device, problems);
  }
  check_levels(machine, problems);
  check_nvidia_link(machine, problems);
  check_attention(machine, problems);
  check_efficiencies(machine, problems);
  check_gemms(machine, problems);
  check_grouped_gemms(machine, problems);
  check_sources(machine, problems);
  return problems;
}

}  // namespace sextant
