#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "doctor/checks.h"

namespace sextant {

namespace {

constexpr const char* kGpuGroup = "gpu";
constexpr uint64_t kManyLinkErrors = 5;
constexpr unsigned kHot = 85;  // degrees Celsius

// One finding over all cards: the worst health any of them has, and what is wrong with which.
struct CardVerdict {
  Health health = Health::ok;
  std::string found, advice;  // found: only where something is wrong
};
using CardJudge = std::function<std::optional<CardVerdict>(const GpuFacts&)>;  // nullopt: the card does not say

void judge_cards(const std::string& name, const GpuReport& report, const std::string& all_well, const CardJudge& judge,
                 Examination& exam) {
  Finding finding{kGpuGroup, name, Health::ok, {}, {}};
  size_t silent = 0;
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    std::optional<CardVerdict> verdict = judge(report.gpus[i]);
    if (!verdict) ++silent;
    if (!verdict || verdict->health == Health::ok) continue;
    finding.found += fmt::format("{}GPU {}: {}", finding.found.empty() ? "" : "; ", i, verdict->found);
    if (finding.health != Health::failure) finding.health = verdict->health, finding.advice = verdict->advice;
  }
  if (silent == report.gpus.size()) return exam.unknown(kGpuGroup, name, "unavailable from the driver");
  if (finding.found.empty()) finding.found = all_well;
  exam.add(std::move(finding));
}

void check_same_kind(const GpuReport& report, Examination& exam) {
  std::map<std::string, int> kinds;
  for (const GpuFacts& gpu : report.gpus)
    ++kinds[fmt::format("{}{}", gpu.name, gpu.vbios ? ", VBIOS " + *gpu.vbios : "")];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} × {}", count, kind));
  std::string found = fmt::format("{}", fmt::join(parts, "; "));
  exam.fact("gpus", found);
  if (kinds.size() == 1) return exam.ok(kGpuGroup, "cards", found);
  exam.add({kGpuGroup, "cards", Health::warning, found,
            "the slowest card sets the pace: use those of one kind (CUDA_VISIBLE_DEVICES), or flash one VBIOS on all"});
}

std::optional<CardVerdict> judge_ecc(const GpuFacts& gpu) {
  if (gpu.uncorrected_errors.value_or(0) > 0)
    return CardVerdict{Health::failure,
                       fmt::format("{} uncorrected memory errors since the driver was loaded", *gpu.uncorrected_errors),
                       "reset the card (nvidia-smi -r); when they come back, have it replaced"};
  if (!gpu.ecc) return std::nullopt;
  if (!*gpu.ecc)
    return CardVerdict{Health::warning, "ECC is off", "memory errors would go unnoticed: nvidia-smi -e 1, then reboot"};
  return CardVerdict{};
}

std::optional<CardVerdict> judge_remaps(const GpuFacts& gpu) {
  if (!gpu.remaps) return std::nullopt;
  if (gpu.remaps->failed)
    return CardVerdict{Health::failure, "a bad memory row could not be replaced", "have the card replaced"};
  if (gpu.remaps->pending)
    return CardVerdict{Health::warning, "a bad memory row is replaced at the next reset",
                       "reset the card (nvidia-smi -r) before training"};
  return CardVerdict{};
}

std::optional<CardVerdict> judge_pcie(const GpuFacts& gpu) {
  if (!gpu.pcie) return std::nullopt;
  const PcieLink& link = *gpu.pcie;
  bool idle = gpu.slowed_by.value_or(kGpuIdle) & kGpuIdle;  // idle links slow down to save power
  if (link.width < link.widest || (!idle && link.generation < link.newest))
    return CardVerdict{
        Health::warning,
        fmt::format("generation {} × {} lanes of {} × {}", link.generation, link.width, link.newest, link.widest),
        "copies to and from the host are slow: reseat the card, look at the riser and the BIOS"};
  return CardVerdict{};
}

std::optional<CardVerdict> judge_clocks(const GpuFacts& gpu) {
  if (!gpu.slowed_by) return std::nullopt;
  std::vector<std::string> reasons;
  if (*gpu.slowed_by & (kThermalSoftware | kThermalHardware)) reasons.push_back("heat");
  if (*gpu.slowed_by & kPowerBrake) reasons.push_back("the power supply");
  if (reasons.empty() && *gpu.slowed_by & kHardwareSlowdown) reasons.push_back("the hardware");
  if (gpu.temperature.value_or(0) >= kHot && reasons.empty())
    reasons.push_back(fmt::format("soon by heat, at {} °C", *gpu.temperature));
  if (reasons.empty()) return CardVerdict{};
  return CardVerdict{Health::warning,
                     fmt::format("slowed by {}{}", fmt::join(reasons, " and "),
                                 gpu.clock_mhz ? fmt::format(", at {} MHz", *gpu.clock_mhz) : ""),
                     "look at fans, air and power of this machine: one slow card slows all ranks"};
}

std::string clocks_text(const GpuReport& report) {
  auto [low, high] = std::minmax_element(
      report.gpus.begin(), report.gpus.end(),
      [](const GpuFacts& a, const GpuFacts& b) { return a.clock_mhz.value_or(0) < b.clock_mhz.value_or(0); });
  return fmt::format("{} to {} MHz now, up to {}, nothing slows them", low->clock_mhz.value_or(0),
                     high->clock_mhz.value_or(0), high->highest_clock_mhz.value_or(0));
}

void check_links(const GpuReport& report, Examination& exam) {
  int most = 0;
  for (const GpuFacts& gpu : report.gpus) most = std::max(most, gpu.links ? gpu.links->up : 0);
  if (most == 0) return exam.ok(kGpuGroup, "NVLink", "none in use");
  judge_cards(
      "NVLink", report, fmt::format("{} links up on each", most),
      [most](const GpuFacts& gpu) -> std::optional<CardVerdict> {
        NvLinks links = gpu.links.value_or(NvLinks{});
        if (links.up < most)
          return CardVerdict{
              Health::failure, fmt::format("{} links up where others have {}", links.up, most),
              "NVLink traffic falls back to slower paths or fails: reset the card, look at the fabric manager's log"};
        if (links.errors >= kManyLinkErrors)
          return CardVerdict{
              Health::warning, fmt::format("{} link errors since the driver was loaded", links.errors),
              "look again after an hour of training; when the number grows, have the card or its board replaced"};
        return CardVerdict{};
      },
      exam);
}

}  // namespace

void check_gpus(const Host&, const GpuReport& report, Examination& exam) {
  if (report.gpus.empty()) return exam.ok(kGpuGroup, "no GPU", report.problem + "; ranks compute on the processor");
  if (report.driver) exam.fact("driver", *report.driver);
  exam.ok(kGpuGroup, "driver",
          fmt::format("{}{}", report.driver.value_or("of unknown version"),
                      report.newest_cuda ? fmt::format(", serves CUDA up to {}", *report.newest_cuda) : ""));
  check_same_kind(report, exam);
  judge_cards("memory errors", report, "none uncorrected, ECC on", judge_ecc, exam);
  judge_cards("memory rows", report, "none waits to be replaced", judge_remaps, exam);
  check_links(report, exam);
  judge_cards("PCIe", report, "full width", judge_pcie, exam);
  judge_cards("clocks", report, clocks_text(report), judge_clocks, exam);
}

}  // namespace sextant
