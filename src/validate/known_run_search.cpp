#include "validate/known_run_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cost/software_profile_file.h"
#include "models/model.h"
#include "run/resolve_spec.h"
#include "search/search_price.h"

namespace sextant {

namespace {

// Layouts whose times differ by less take equally long.
constexpr double kSameTime = 1e-6;

KnownRunSearch search_known_run(const KnownRun& known, const std::vector<SoftwareProfile>& profiles,
                                const KnownRunSearchRequest& asked) {
  const auto [config, spec, profile, machine] = load_known_run(known, profiles);
  KnownRunSearch out{.run = known, .published = price_layout(config, {spec, machine, profile})};
  out.published.overrides = overrides_text(out.published.choice);
  SearchRequest request{.run = config,
                        .spec = spec,
                        .machine = machine,
                        .profile = profile,
                        .devices = out.published.choice.devices(),
                        .keep = 1,
                        .limits = asked.limits,
                        .intervals = &asked.intervals,
                        .known_to_fit_bytes = static_cast<double>(out.published.peak_bytes),
                        .scope = SearchScope::fastest,
                        .below_seconds = (1 + kSameTime) * out.published.seconds};
  SearchResult result = search_layouts(request);
  if (result.best.empty()) {
    request.below_seconds = std::numeric_limits<double>::infinity();
    result = search_layouts(request);
  }
  out.found = result.best.front(), out.considered = result.counts.considered;
  Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
  out.interval = asked.intervals.interval({.device = machine.device.name,
                                           .software = profile.name,
                                           .models = models_word(spec.experts.has_value()),
                                           .size = size_class(static_cast<double>(parameter_count(graph))),
                                           .dominated = out.published.dominated});
  return out;
}

nlohmann::ordered_json layout_json(const Candidate& candidate) {
  return {{"overrides", candidate.overrides}, {"seconds", candidate.seconds}, {"peak_bytes", candidate.peak_bytes}};
}

}  // namespace

std::string_view name_of(SearchVerdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"faster", "same", "equal", "slower"};
  return kNames[static_cast<size_t>(verdict)];
}

SearchVerdict KnownRunSearch::verdict() const {
  if (std::abs(ratio() - 1) <= kSameTime) return SearchVerdict::same;
  if (ratio() < 1) return SearchVerdict::faster;
  return interval.equal(found.seconds, published.seconds) ? SearchVerdict::equal : SearchVerdict::slower;
}

std::vector<KnownRunSearch> search_known_runs(const KnownRunSearchRequest& request) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  std::vector<KnownRunSearch> results;
  for (const KnownRun& run : request.runs) {
    if (request.progress) request.progress(run.name);
    results.push_back(search_known_run(run, profiles, request));
  }
  return results;
}

std::string known_run_searches_text(const std::vector<KnownRunSearch>& results) {
  std::string text =
      fmt::format("{:<36}{:>8}{:>13}{:>10}{:>9}  {:<8}{}\n", "run", "devices", "published s", "found s", "", "", "");
  for (const KnownRunSearch& r : results)
    text +=
        fmt::format("{:<36}{:>8}{:>13.4g}{:>10.4g}{:>9}  {:<8}{:>9} layouts; {:.0f} GB against {:.0f} GB\n  {}\n",
                    r.run.name, r.published.choice.devices(), r.published.seconds, r.found.seconds,
                    fmt::format("{:+.1f} %", 100 * (r.ratio() - 1)), name_of(r.verdict()), r.considered,
                    static_cast<double>(r.found.peak_bytes) / 1e9, static_cast<double>(r.published.peak_bytes) / 1e9,
                    r.verdict() == SearchVerdict::same ? "as published" : r.found.overrides);
  auto count = [&](SearchVerdict verdict) { return std::ranges::count(results, verdict, &KnownRunSearch::verdict); };
  return text +
         fmt::format(
             "\nof {} runs the search finds {} faster than the published layout, {} as fast, {} slower by less than "
             "the interval of predictions, {} slower\npredicted by the efficiencies that were fitted; a layout "
             "may use a schedule that the software of its time did not have\n",
             results.size(), count(SearchVerdict::faster), count(SearchVerdict::same), count(SearchVerdict::equal),
             count(SearchVerdict::slower));
}

std::string known_run_searches_json(const std::vector<KnownRunSearch>& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KnownRunSearch& r : results)
    list.push_back({{"name", r.run.name},
                    {"machine", r.run.machine},
                    {"software", r.run.software},
                    {"devices", r.published.choice.devices()},
                    {"layouts", r.considered},
                    {"published", layout_json(r.published)},
                    {"found", layout_json(r.found)},
                    {"ratio", r.ratio()},
                    {"equal_within", r.interval.high(1)},
                    {"verdict", name_of(r.verdict())}});
  return nlohmann::ordered_json{{"published", std::move(list)}}.dump(1) + "\n";
}

}  // namespace sextant
