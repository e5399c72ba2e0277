#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "laws/quantity.h"
#include "laws/run_amounts.h"
#include "search/offload_rungs.h"
#include "search/search.h"

namespace sextant {

namespace {

double gigabytes(int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

// Of estimates, whether it fits is not sure.
std::string line_of(const Candidate& candidate, bool estimate) {
  return fmt::format("{:9.4f} s {:7.1f} GB {}{:5.1f} % MFU {:9.0f} tokens/s/device  {}\n", candidate.seconds,
                     gigabytes(candidate.peak_bytes), estimate ? fmt::format("{:<8}", name_of(candidate.fit)) : "",
                     100 * candidate.mfu, candidate.tokens_per_s_per_device, candidate.overrides);
}

// Bytes of a device that are offloaded, to the host and to NVMe.
std::string offloaded_text(const Candidate& candidate) {
  std::string text;
  if (candidate.host_bytes > 0) text += fmt::format("; {:.1f} GB on the host", gigabytes(candidate.host_bytes));
  if (candidate.nvme_bytes > 0) text += fmt::format("; {:.1f} GB on NVMe", gigabytes(candidate.nvme_bytes));
  return text;
}

// Days and cost of the whole run, where they were asked for.
std::string run_line(const Candidate& candidate) {
  if (!candidate.economics) return "";
  const Economics& run = *candidate.economics;
  std::string text = fmt::format("     {} tokens: ", human_quantity(run.run.token_budget));
  if (!run.days_with_failures) return text + "with failures it does not end\n";
  text += human_days(*run.days_with_failures) + " with failures and checkpoints";
  if (run.cost) text += ", " + human_cost(*run.cost);
  return text + "\n";
}

std::string equals_text(const SearchResult& result) {
  auto equal = std::ranges::count(result.best, true, &Candidate::equals_best);
  const PredictionInterval& interval = *result.interval;
  return fmt::format(
      "\n{} of these {} count as equal: {:.0f} % of measured steps lie within a factor of {:.2g} of ours\n", equal,
      result.best.size(), 100 * interval.share, interval.high(1));
}

std::string memory_known_text(const SearchResult& result) {
  const MemoryInterval& interval = *result.memory_interval;
  return fmt::format("memory is estimated: {:.0f} % of {} {} took {:.2g} to {:.2g} times the estimate\n",
                     100 * interval.share, interval.rows, text_of(interval.of), interval.least, interval.most);
}

nlohmann::ordered_json json_of(const Candidate& candidate) {
  nlohmann::ordered_json parts{{"compute", candidate.parts.compute},
                               {"update", candidate.parts.update},
                               {"bubble", candidate.parts.bubble},
                               {"host", candidate.parts.host}};
  for (const auto& [axes, seconds] : candidate.parts.exposed) parts["exposed"][axes] = seconds;
  nlohmann::ordered_json json{{"overrides", candidate.overrides},
                              {"seconds", candidate.seconds},
                              {"peak_bytes", candidate.peak_bytes},
                              {"host_bytes", candidate.host_bytes},
                              {"nvme_bytes", candidate.nvme_bytes},
                              {"fit", name_of(candidate.fit)},
                              {"mfu", candidate.mfu},
                              {"tokens_per_s_per_device", candidate.tokens_per_s_per_device},
                              {"parts_s", parts},
                              {"why", candidate.why},
                              {"hurts", candidate.hurts},
                              {"equals_best", candidate.equals_best}};
  if (candidate.economics) json["run"] = nlohmann::ordered_json::parse(economics_json(*candidate.economics));
  return json;
}

}  // namespace

std::string search_text(const SearchResult& result) {
  std::string text =
      fmt::format("{} × {} tokens on {} × {} ({}), {:.0f} GB each, {}\n", result.sequences, result.seq, result.devices,
                  result.device, result.machine, result.device_bytes / 1e9, result.profile);
  text += result.headroom.about + "\n";
  if (result.imbalance) text += fmt::format("tokens among ranks of experts: {}\n", result.imbalance->about);
  const SearchCounts& counts = result.counts;
  text += fmt::format(
      "{} layouts: {} too large and {} too slow by their bounds, {} lowered and simulated ({} of them did not fit), "
      "in {:.1f} s\n\nfastest\n",
      counts.considered, counts.too_large, counts.too_slow, counts.priced, counts.did_not_fit, result.search_seconds);
  for (size_t i = 0; i < result.best.size(); ++i) {
    const Candidate& candidate = result.best[i];
    text += fmt::format("{:3}. {}", i + 1, line_of(candidate, result.memory_interval.has_value()));
    text += fmt::format("     {}{}\n", candidate.why, offloaded_text(candidate)) + run_line(candidate);
    if (i > 0) text += fmt::format("     hurts: {}\n", candidate.hurts);
  }
  if (result.interval) text += equals_text(result);
  if (result.memory_interval) text += memory_known_text(result);
  text += "\nless memory for more time\n";
  for (const Candidate& candidate : result.pareto)
    text += "     " + line_of(candidate, result.memory_interval.has_value());
  text += "\nbehind the config, the keys of a line give its layout; --write FILE writes the first as a config\n";
  if (std::ranges::any_of(result.best, [](const Candidate& c) { return c.config.offload.path == kPathToName; }))
    text += fmt::format("in place of {}, name a directory on a local disk of each node\n", kPathToName);
  return text;
}

std::string search_json(const SearchResult& result) {
  const SearchCounts& counts = result.counts;
  nlohmann::ordered_json json{{"devices", result.devices},
                              {"machine", result.machine},
                              {"device", result.device},
                              {"profile", result.profile},
                              {"sequences", result.sequences},
                              {"seq", result.seq},
                              {"device_bytes", result.device_bytes},
                              {"layouts",
                               {{"considered", counts.considered},
                                {"too_large", counts.too_large},
                                {"too_slow", counts.too_slow},
                                {"priced", counts.priced},
                                {"did_not_fit", counts.did_not_fit}}},
                              {"search_seconds", result.search_seconds}};
  json["headroom"] = {
      {"share", result.headroom.share}, {"from", name_of(result.headroom.from)}, {"about", result.headroom.about}};
  if (const std::optional<MemoryInterval>& memory = result.memory_interval)
    json["memory_interval"] = {{"share", memory->share},
                               {"low", memory->least},
                               {"high", memory->most},
                               {"learned_from", memory->rows},
                               {"learned_by", text_of(memory->of)}};
  if (result.interval)
    json["interval"] = {
        {"share", result.interval->share}, {"low", result.interval->low(1)}, {"high", result.interval->high(1)}};
  json["best"] = nlohmann::ordered_json::array();
  json["pareto"] = nlohmann::ordered_json::array();
  for (const Candidate& candidate : result.best) json["best"].push_back(json_of(candidate));
  for (const Candidate& candidate : result.pareto) json["pareto"].push_back(json_of(candidate));
  return json.dump(2) + "\n";
}

}  // namespace sextant
