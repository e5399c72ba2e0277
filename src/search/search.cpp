#include "search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "base/units.h"
#include "models/model.h"
#include "search/layout_overrides.h"
#include "search/layout_search.h"
#include "search/offload_rungs.h"

namespace sextant {

namespace {

// No layout at all: because of the limits, or because the batch fits no mesh.
[[noreturn]] void refuse_all(const SearchRequest& request, const SpaceRequest& space) {
  SpaceRequest free = space;
  free.limits = nullptr;
  if (!request.limits.empty() && !layouts_of(free).empty())
    throw UserError({.place = "--only",
                     .got = fmt::format("no layout of {} devices has {}", request.devices, request.limits.text()),
                     .hint = "leave one of these out"});
  NearBatches near = near_batches(space);
  std::string would = near.below > 0 ? fmt::format("batch.sequences={} or {}", near.below, near.above)
                                     : fmt::format("batch.sequences={}", near.above);
  if (near.above == 0) would = "another number of devices: heads, layers and devices have no mesh in common";
  throw UserError({.place = request.run.place_of("batch.sequences"),
                   .got = fmt::format("{} sequences cannot be shared equally on any mesh of {} devices",
                                      request.run.batch.sequences, request.devices),
                   .expected = "a multiple of some mesh's dp",
                   .hint = "would work: " + would});
}

using Searches = std::vector<std::unique_ptr<LayoutSearch>>;  // of the run, then of each rung that was tried

std::optional<Candidate> smallest_of(const Searches& searches, int64_t devices) {
  std::optional<Candidate> least;
  for (const auto& search : searches) {
    std::optional<Candidate> next = search->smallest(devices);
    if (next && (!least || is_nearer_to_fit(*next, *least))) least = std::move(next);
    if (least && least->fits) break;  // what a rung further on saves is paid for
  }
  return least;
}

// More devices until the smallest layout fits.
std::string devices_that_fit(const Searches& searches, const SearchRequest& request) {
  constexpr int64_t kMostTimes = 64;
  for (int64_t times = 2; times <= kMostTimes; times *= 2) {
    const int64_t devices = request.devices * times;
    // Where neither the first rung nor the last fits, those between them hardly do.
    auto fits = [&](LayoutSearch& search) {
      std::optional<Candidate> least = search.smallest(devices);
      return least && least->fits;
    };
    if (!fits(*searches.front()) && !fits(*searches.back())) continue;
    const Candidate least = *smallest_of(searches, devices);
    return fmt::format("{} devices would do: {} ({})", devices, layout_overrides(request.run, least.config),
                       human(Bytes{least.peak_bytes}));
  }
  return "more devices do not help: use a shorter batch.seq, a smaller model or a device with more memory";
}

// The shortage of the smallest layout: memory of the device, of the host or of its disks.
std::string needs_of(const Candidate& least, const SearchRequest& request) {
  const std::string overrides = layout_overrides(request.run, least.config);
  if (!least.fits_device) return fmt::format("the smallest needs {} ({})", human(Bytes{least.peak_bytes}), overrides);
  const Machine& machine = request.machine;
  const int64_t devices = least.choice.devices();
  auto lacks = [&](std::string_view where, int64_t bytes, double room) {
    return fmt::format("the smallest that fits the device needs {} {} for each, where {} are ({})", human(Bytes{bytes}),
                       where, human(Bytes{static_cast<int64_t>(room)}), overrides);
  };
  if (static_cast<double>(least.host_bytes) > machine.host_bytes_of(devices))
    return lacks("on the host", least.host_bytes, machine.host_bytes_of(devices));
  return lacks("on NVMe", least.nvme_bytes, machine.nvme_bytes_of(devices));
}

[[noreturn]] void refuse_size(const Searches& searches, const SearchRequest& request) {
  std::optional<Candidate> least = smallest_of(searches, request.devices);
  throw DoesNotFit({.place = request.run.source,
                    .got = fmt::format("no layout on {} devices fits the {} of {}; {}; {}", request.devices,
                                       human(Bytes{static_cast<int64_t>(request.machine.device.memory_bytes)}),
                                       request.machine.device.name,
                                       least ? needs_of(*least, request) : std::string("none can be lowered"),
                                       searches.front()->memory().headroom.about),
                    .expected = "a layout that fits",
                    .hint = request.scope == SearchScope::whole ? devices_that_fit(searches, request) : std::string()});
}

// Layouts that are nearer to the fastest than predictions are known.
void mark_equals(SearchResult& result, const SearchRequest& request) {
  const Candidate& fastest = result.best.front();
  if (request.intervals && !request.intervals->empty() && request.machine.device.kind == DeviceKind::accelerator)
    result.interval = request.intervals->interval({.device = result.device,
                                                   .software = result.profile,
                                                   .models = models_word(request.spec.experts.has_value()),
                                                   .size = size_class(static_cast<double>(parameter_count(
                                                       build_model(request.spec, {.seq = 1}, single_rank_mesh())))),
                                                   .dominated = fastest.dominated});
  auto equal = [&](const Candidate& candidate) {
    return result.interval ? result.interval->equal(candidate.seconds, fastest.seconds)
                           : candidate.seconds == fastest.seconds;
  };
  for (std::vector<Candidate>* list : {&result.best, &result.pareto})
    for (Candidate& candidate : *list) candidate.equals_best = equal(candidate);
}

void require_layouts(const SearchRequest& request) {
  SpaceRequest space{request.run, request.spec, request.machine, request.devices, Breadth::usual, &request.limits};
  if (!layouts_of(space).empty()) return;
  space.breadth = Breadth::wide;
  if (layouts_of(space).empty()) refuse_all(request, space);
}

SearchResult result_of(LayoutSearch& search, const SearchRequest& request) {
  if (request.scope == SearchScope::whole) search.find_front();
  SearchResult result{.model = request.spec.architecture,
                      .machine = request.machine.name,
                      .device = request.machine.device.name,
                      .profile = request.profile.name,
                      .devices = request.devices,
                      .sequences = request.run.batch.sequences,
                      .seq = request.run.batch.seq,
                      .device_bytes = request.machine.device.memory_bytes};
  if (request.spec.experts) result.imbalance = request.imbalance;
  search.finish(result);
  if (!result.best.empty()) mark_equals(result, request);
  return result;
}

}  // namespace

SearchResult search_layouts(const SearchRequest& request) {
  auto began = std::chrono::steady_clock::now();
  require_layouts(request);
  Searches searches;
  bool evaluation_lacks_room = false;
  auto search = [&](std::vector<RunConfig> runs) -> std::optional<SearchResult> {
    LayoutSearch& next = *searches.emplace_back(std::make_unique<LayoutSearch>(request, std::move(runs)));
    if (!next.find_best()) return std::nullopt;
    SearchResult result = result_of(next, request);
    result.search_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (!result.best.empty() || !next.found()) return result;
    evaluation_lacks_room = true;
    return std::nullopt;
  };
  if (std::optional<SearchResult> result = search({request.run})) return std::move(*result);
  for (OffloadRung& rung : offload_rungs(request)) {
    if (rung.on_nvme && std::ranges::none_of(searches, [](const auto& tried) { return tried->host_is_short(); })) break;
    if (request.progress) request.progress(rung.about);
    if (std::optional<SearchResult> result = search(std::move(rung.runs))) return std::move(*result);
  }
  if (evaluation_lacks_room)
    throw DoesNotFit({.place = request.run.source,
                      .got = "in the layouts that fit, evaluation does not fit",
                      .expected = "a layout that fits with its evaluation",
                      .hint = "train.eval_every=0 leaves evaluation out; or use more devices"});
  refuse_size(searches, request);
}

std::optional<Candidate> smallest_layout(const SearchRequest& request) {
  LayoutSearch plain(request, {request.run});
  std::optional<Candidate> least = plain.smallest(request.devices);
  if (!least || least->fits) return least;
  for (OffloadRung& rung : offload_rungs(request)) {
    if (rung.on_nvme && !least->fits_device) break;  // disks are for what the host has no room for
    std::optional<Candidate> next = LayoutSearch(request, std::move(rung.runs)).smallest(request.devices);
    if (next && is_nearer_to_fit(*next, *least)) least = std::move(next);
    if (least->fits) break;
  }
  return least;
}

std::vector<Candidate> rank_layouts(const std::vector<RunConfig>& layouts, const SearchRequest& request) {
  std::vector<std::optional<Candidate>> prices(layouts.size());
  ThreadTeam team(request.threads);
  team.parallel_for(static_cast<int64_t>(layouts.size()), [&](int64_t i, int) {
    try {
      prices[static_cast<size_t>(i)] =
          price_layout(layouts[static_cast<size_t>(i)], {request.spec, request.machine, request.profile, request.target,
                                                         request.imbalance, search_memory(request).limit});
    } catch (const UserError&) {  // one that no pass can make is not ranked
    }
  });
  std::vector<Candidate> ranked;
  for (std::optional<Candidate>& price : prices)
    if (price) ranked.push_back(std::move(*price));
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Candidate& a, const Candidate& b) { return a.fits != b.fits ? a.fits : is_faster(a, b); });
  for (Candidate& candidate : ranked) candidate.hurts = hurts_of(candidate, ranked.front());
  return ranked;
}

}  // namespace sextant
