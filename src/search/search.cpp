#include "search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "base/units.h"
#include "config/check.h"
#include "models/model.h"
#include "run/programs.h"
#include "schedule/schedules.h"
#include "search/layout_overrides.h"
#include "search/search_bound.h"
#include "search/search_memory.h"
#include "search/search_price.h"

namespace sextant {

namespace {

constexpr int64_t kBatch = 16;  // nodes at once; not the number of threads, so that results do not depend on it
// The front of memory against time: as far as this, as fine as this, with so many layouts priced for it at most.
constexpr double kFrontReach = 1.5, kFrontStep = 0.97;
constexpr size_t kFrontPrices = 40;
constexpr double kNever = 1e300;
constexpr size_t kSmallest = 4;  // priced to find the smallest
constexpr std::array<std::string_view, 5> kByMemory{"full", "latent", "selective", "norms",
                                                    "none"};  // each saves no less than the one before

// A layout on its way: bound after bound is known, each closer than the one before and dearer, then its price.
struct Node {
  LayoutChoice choice;
  size_t order = 0;
  LeastCost least;
  Closeness close = Closeness::coarse;
};

struct Later {
  bool operator()(const Node& a, const Node& b) const {
    return a.least.seconds != b.least.seconds ? a.least.seconds > b.least.seconds : a.order > b.order;
  }
};

bool faster(const Candidate& a, const Candidate& b) {
  return a.seconds != b.seconds ? a.seconds < b.seconds : a.peak_bytes < b.peak_bytes;
}

class Search {
 public:
  explicit Search(const SearchRequest& request)
      : request_(request),
        memory_(search_memory(request)),
        run_(without_evaluation(request.run)),
        bounds_({run_, request.spec, request.machine, request.profile, request.target, request.imbalance.ratio}),
        team_(request.threads) {}

  // Puts all that may fit in order.
  void look_at(const std::vector<LayoutChoice>& choices) {
    std::map<std::string, std::vector<Node>> families;
    for (size_t i = 0; i < choices.size(); ++i)
      families[family_of(choices[i])].push_back({choices[i], counts_.considered + i, {}, Closeness::coarse});
    counts_.considered += choices.size();
    say(fmt::format("{} layouts", choices.size()));
    std::vector<std::vector<Node>> lists;
    for (auto& [name, nodes] : families) lists.push_back(std::move(nodes));
    each_index(lists.size(), [&](size_t i) { bound_family(lists[i]); });
    for (std::vector<Node>& nodes : lists)
      for (Node& node : nodes) keep_if_fits(node);
  }

  void find_best() {
    auto worth = [&](const Node& node) { return node.least.seconds < kept_limit(); };
    while (advance(worth, NotWorth::ends) > 0) say(fmt::format("{} priced, {} to go", counts_.priced, queue_.size()));
  }

  // Those that are slower than the best kept but need less memory than whatever is as fast.
  void find_front() {
    if (priced_.empty()) return;
    size_t until = counts_.priced + kFrontPrices;
    auto worth = [&](const Node& node) {
      return counts_.priced < until && node.least.seconds < kFrontReach * priced_.front().seconds &&
             !is_dominated(node);
    };
    while (advance(worth, NotWorth::dropped) > 0)
      say(fmt::format("{} priced for the front of memory against time", counts_.priced));
  }

  void finish(SearchResult& result) {
    counts_.too_slow += queue_.size();
    result.counts = counts_;
    result.best.assign(priced_.begin(),
                       priced_.begin() + static_cast<std::ptrdiff_t>(std::min(request_.keep, priced_.size())));
    result.pareto = front_of(priced_);
    // Prices are of training alone.
    if (has_validation(request_.run) || request_.token_budget > 0) {
      settle_all(result.best), settle_all(result.pareto);
      result.pareto = front_of(result.pareto);
    }
    if (!result.best.empty()) verify_layout(result.best.front(), price_request());
    result.headroom = memory_.headroom, result.memory_interval = memory_.interval;
    for (auto* list : {&result.best, &result.pareto})
      for (Candidate& candidate : *list) {
        candidate.fit = memory_fit(static_cast<double>(candidate.peak_bytes), memory_.room, memory_.interval);
        candidate.hurts = hurts_of(candidate, result.best.empty() ? candidate : result.best.front());
        candidate.overrides = layout_overrides(request_.run, candidate.config);
      }
  }

  bool found() const { return !priced_.empty(); }
  const SearchMemory& memory() const { return memory_; }
  // Whether there are layouts that may fit and are too slow to be looked for.
  bool leaves_slower() const { return !queue_.empty(); }

  // Of the layouts, the one that needs least memory, priced.
  std::optional<Candidate> smallest(std::vector<LayoutChoice> choices) {
    // Of layouts that are otherwise alike, these need least.
    std::erase_if(choices, [](const LayoutChoice& c) {
      return c.recompute != "full" || c.microbatch > 1 || c.mesh.zero_ranks > 0 || c.schedule != "1f1b";
    });
    std::vector<Node> nodes(choices.size());
    for (size_t i = 0; i < choices.size(); ++i) nodes[i].choice = choices[i];
    each_index(nodes.size(), [&](size_t i) { nodes[i].least = bound(nodes[i].choice, Closeness::coarse); });
    auto less = [](const Node& a, const Node& b) { return a.least.bytes < b.least.bytes; };
    std::stable_sort(nodes.begin(), nodes.end(), less);
    nodes.resize(std::min(nodes.size(), kSmallest));
    std::vector<std::optional<Candidate>> prices(nodes.size());
    each_index(nodes.size(), [&](size_t i) { prices[i] = price(nodes[i].choice); });
    std::optional<Candidate> least;
    for (auto& p : prices)
      if (p && (!least || p->peak_bytes < least->peak_bytes)) least = std::move(p);
    return least;
  }

 private:
  void say(const std::string& text) const {
    if (request_.progress) request_.progress(text);
  }

  PriceRequest price_request() const {
    return {request_.spec, request_.machine, request_.profile, request_.target, request_.imbalance, memory_.limit};
  }

  // Of candidates from the fastest on: each needs less memory than all before it.
  static std::vector<Candidate> front_of(const std::vector<Candidate>& candidates) {
    std::vector<Candidate> front;
    for (const Candidate& candidate : candidates)
      if (front.empty() || candidate.peak_bytes < front.back().peak_bytes) front.push_back(candidate);
    return front;
  }

  void settle_all(std::vector<Candidate>& candidates) {
    each_index(candidates.size(), [&](size_t i) { settle(candidates[i], price_request(), request_.token_budget); });
    std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.fits; });
  }

  template <class Body>
  void each_index(size_t count, const Body& body) {
    team_.parallel_for(static_cast<int64_t>(count), [&](int64_t i, int) { body(static_cast<size_t>(i)); });
  }

  // Layouts that differ in microbatch and recompute only.
  static std::string family_of(LayoutChoice choice) {
    choice.microbatch = 1, choice.recompute = "";
    return overrides_text(choice);
  }

  // More sequences at once, or less computed again, need no less memory: what is larger than one that is too large is
  // not asked. Except with a single microbatch, whose gradients are not summed up and need not stay.
  void bound_family(std::vector<Node>& nodes) {
    auto modes = [](const Node& node) { return std::find(kByMemory.begin(), kByMemory.end(), node.choice.recompute); };
    std::stable_sort(nodes.begin(), nodes.end(), [&](const Node& a, const Node& b) {
      return modes(a) != modes(b) ? modes(a) < modes(b) : a.choice.microbatch < b.choice.microbatch;
    });
    int64_t too_large = std::numeric_limits<int64_t>::max();  // a microbatch, with the mode before or the same
    for (Node& node : nodes) {
      bool single = node.choice.microbatch * node.choice.mesh.dp == run_.batch.sequences;
      node.least = {.seconds = kNever, .bytes = kNever};
      if (node.choice.microbatch >= too_large && !single) continue;
      node.least = bound(node.choice, Closeness::coarse);
      if (!single && node.least.bytes > memory_.limit) too_large = node.choice.microbatch;
    }
  }

  void keep_if_fits(Node& node) {
    if (node.least.bytes > memory_.limit)
      ++counts_.too_large;
    else
      queue_.push(std::move(node));
  }

  // What a layout must be faster than to be kept.
  double kept_limit() const {
    double kept = priced_.size() < request_.keep ? kNever : priced_[request_.keep - 1].seconds;
    return std::min(kept, request_.below_seconds);
  }

  bool is_dominated(const Node& node) const {
    return std::any_of(priced_.begin(), priced_.end(), [&](const Candidate& p) {
      return p.seconds * kFrontStep <= node.least.seconds &&
             static_cast<double>(p.peak_bytes) * kFrontStep <= node.least.bytes;
    });
  }

  std::optional<Candidate> price(const LayoutChoice& choice) const {
    try {
      return price_layout(with_choice(request_.run, choice), price_request());
    } catch (const UserError&) {
      return std::nullopt;  // a layout that some pass cannot make
    }
  }

  // A layout that some pass cannot make fits nowhere.
  LeastCost bound(const LayoutChoice& choice, Closeness close) {
    try {
      return bounds_.bound(choice, close);
    } catch (const UserError&) {
      return {.seconds = kNever, .bytes = kNever};
    }
  }

  // A layout that is not worth it ends a round whose worth is decided by time alone, as later ones take longer.
  enum class NotWorth : uint8_t { ends, dropped };

  // The next layouts, by their bounds, that are worth it: each comes one step further. How many there were.
  template <class Worth>
  size_t advance(const Worth& worth, NotWorth otherwise) {
    std::vector<Node> next;
    while (!queue_.empty() && next.size() < static_cast<size_t>(kBatch)) {
      bool wanted = worth(queue_.top());
      if (!wanted && otherwise == NotWorth::ends) break;
      if (wanted) next.push_back(queue_.top());
      counts_.too_slow += wanted ? 0 : 1;
      queue_.pop();
    }
    std::vector<std::optional<Candidate>> prices(next.size());
    each_index(next.size(), [&](size_t i) {
      if (closer(next[i]))
        refine(next[i]);
      else
        prices[i] = price(next[i].choice);
    });
    for (size_t i = 0; i < next.size(); ++i) {
      if (std::optional<Closeness> then = closer(next[i])) {
        next[i].close = *then;
        keep_if_fits(next[i]);
      } else {
        keep(std::move(prices[i]));
      }
    }
    std::sort(priced_.begin(), priced_.end(), faster);
    return next.size();
  }

  // The bound behind the one that is known; nullopt where the price comes next.
  static std::optional<Closeness> closer(const Node& node) {
    if (node.close == Closeness::coarse && node.choice.mesh.zero >= 2) return Closeness::sent;
    if (node.close < Closeness::tight) return Closeness::tight;
    bool pairs = find_schedule(node.choice.schedule)->pairs;
    return pairs && node.close == Closeness::tight ? std::optional(Closeness::walked) : std::nullopt;
  }

  void refine(Node& node) {
    LeastCost tighter = bound(node.choice, *closer(node));
    node.least = {std::max(node.least.seconds, tighter.seconds), std::max(node.least.bytes, tighter.bytes)};
  }

  void keep(std::optional<Candidate> candidate) {
    ++counts_.priced;
    if (!candidate || !candidate->fits)
      ++counts_.did_not_fit;
    else
      priced_.push_back(std::move(*candidate));
  }

  const SearchRequest& request_;
  const SearchMemory memory_;
  const RunConfig run_;
  LayoutBounds bounds_;
  ThreadTeam team_;
  std::priority_queue<Node, std::vector<Node>, Later> queue_;
  std::vector<Candidate> priced_;  // that fit, fastest first
  SearchCounts counts_;
};

}  // namespace

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

// More devices until the smallest layout fits.
std::string devices_that_fit(Search& search, const SpaceRequest& space) {
  constexpr int64_t kMostTimes = 64;
  for (int64_t times = 2; times <= kMostTimes; times *= 2) {
    SpaceRequest more{space.run, space.spec, space.machine, space.devices * times, Breadth::wide, space.limits};
    std::optional<Candidate> least = search.smallest(layouts_of(more));
    if (least && least->fits)
      return fmt::format("{} devices would do: {} ({})", more.devices, layout_overrides(space.run, least->config),
                         human(Bytes{least->peak_bytes}));
  }
  return "more devices do not help: use a shorter batch.seq, a smaller model or a device with more memory";
}

[[noreturn]] void refuse_size(Search& search, const SearchRequest& request, const SpaceRequest& space) {
  std::optional<Candidate> least = search.smallest(layouts_of(space));
  std::string smallest = least ? fmt::format("the smallest needs {} ({})", human(Bytes{least->peak_bytes}),
                                             layout_overrides(request.run, least->config))
                               : std::string("none can be lowered");
  throw DoesNotFit({.place = request.run.source,
                    .got = fmt::format("no layout on {} devices fits the {} of {}; {}; {}", request.devices,
                                       human(Bytes{static_cast<int64_t>(request.machine.device.memory_bytes)}),
                                       request.machine.device.name, smallest, search.memory().headroom.about),
                    .expected = "a layout that fits",
                    .hint = request.scope == SearchScope::whole ? devices_that_fit(search, space) : std::string()});
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

// Saved activations of a model of a few blocks, which bounds are made of, say nothing of those of many on the host.
void refuse_offloaded_activations(const SearchRequest& request) {
  if (request.run.offload.activations == "none") return;
  throw UserError({.place = request.run.place_of("offload.activations"),
                   .got = "a search does not place activations on the host yet",
                   .expected = "offload.activations = \"none\" for the search",
                   .hint = "`plan` without --search prices one layout with them"});
}

// The run with optimizer state and master weights on the host, where it and the machine allow that and neither was
// asked for; with them there, and nothing said of working weights, with these too.
std::optional<RunConfig> with_offload(const SearchRequest& request) {
  const RunConfig& run = request.run;
  bool known = request.machine.host.has_link() && request.machine.device.kind != DeviceKind::cpu;
  if (!known || request.profile.kernels != Kernels::ours) return std::nullopt;
  RunConfig with = run;
  if (run.offload.optimizer) {
    if (run.offload.working_weights || run.given("offload.working_weights")) return std::nullopt;
    with.offload.working_weights = true;
    return check(with).empty() ? std::optional(std::move(with)) : std::nullopt;
  }
  if (run.given("offload.optimizer")) return std::nullopt;
  with.offload.optimizer = true;
  Target target = target_of(run, {request.spec, request.machine, request.profile, request.target, request.imbalance});
  with.offload.weights = run.train.precision != "f32" && target.computes_in.front() == DType::bf16;
  return check(with).empty() ? std::optional(std::move(with)) : std::nullopt;
}

SearchRequest with_run(const SearchRequest& request, const RunConfig& run) {
  return {.run = run,
          .spec = request.spec,
          .machine = request.machine,
          .profile = request.profile,
          .devices = request.devices,
          .keep = request.keep,
          .limits = request.limits,
          .target = request.target,
          .token_budget = request.token_budget,
          .imbalance = request.imbalance,
          .threads = request.threads,
          .intervals = request.intervals,
          .headroom = request.headroom,
          .known_to_fit_bytes = request.known_to_fit_bytes,
          .scope = request.scope,
          .below_seconds = request.below_seconds,
          .progress = request.progress};
}

// Nothing fits: the same search with more on the host.
std::optional<SearchResult> search_with_offload(const SearchRequest& request) {
  std::optional<RunConfig> run = with_offload(request);
  if (!run) return std::nullopt;
  SearchRequest again = with_run(request, *run);
  if (request.progress)
    request.progress(run->offload.working_weights ? "nothing fits: once more with the weights of blocks on the host too"
                                                  : "nothing fits: once more with optimizer state on the host");
  try {
    SearchResult result = search_layouts(again);
    for (auto* list : {&result.best, &result.pareto})
      for (Candidate& candidate : *list) candidate.overrides = layout_overrides(request.run, candidate.config);
    return result;
  } catch (const DoesNotFit&) {
    return std::nullopt;
  }
}

}  // namespace

SearchResult search_layouts(const SearchRequest& request) {
  auto began = std::chrono::steady_clock::now();
  if (request.devices < 1 || request.devices > kMaxRanks)
    throw UserError({.place = "--devices",
                     .got = std::to_string(request.devices),
                     .expected = fmt::format("an integer from 1 to {}", kMaxRanks)});
  refuse_offloaded_activations(request);
  SpaceRequest usual{request.run, request.spec, request.machine, request.devices, Breadth::usual, &request.limits},
      wide = usual;
  wide.breadth = Breadth::wide;
  std::vector<LayoutChoice> choices = layouts_of(usual);
  Search search(request);
  if (choices.empty() && layouts_of(wide).empty()) refuse_all(request, wide);
  search.look_at(choices);
  search.find_best();
  if (!search.found() && !search.leaves_slower()) {
    std::vector<LayoutChoice> more = layouts_of(wide);
    std::erase_if(more,
                  [&](const LayoutChoice& c) { return std::find(choices.begin(), choices.end(), c) != choices.end(); });
    search.look_at(more);
    search.find_best();
  }
  if (!search.found() && !search.leaves_slower()) {
    if (std::optional<SearchResult> offloaded = search_with_offload(request)) return std::move(*offloaded);
    refuse_size(search, request, wide);
  }
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
  const bool fits = search.found();
  search.finish(result);
  if (!fits) return result;
  if (result.best.empty())
    throw DoesNotFit({.place = request.run.source,
                      .got = "in the layouts that fit, evaluation does not fit",
                      .expected = "a layout that fits with its evaluation",
                      .hint = "train.eval_every=0 leaves evaluation out; or use more devices"});
  mark_equals(result, request);
  result.search_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

std::optional<Candidate> smallest_layout(const SearchRequest& request) {
  Search search(request);
  std::optional<Candidate> least = search.smallest(
      layouts_of({request.run, request.spec, request.machine, request.devices, Breadth::wide, &request.limits}));
  if (!least || least->fits) return least;
  std::optional<RunConfig> offloaded = with_offload(request);
  if (!offloaded) return least;
  std::optional<Candidate> on_host = smallest_layout(with_run(request, *offloaded));
  return on_host && on_host->peak_bytes < least->peak_bytes ? on_host : least;
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
                   [](const Candidate& a, const Candidate& b) { return a.fits != b.fits ? a.fits : faster(a, b); });
  for (Candidate& candidate : ranked) candidate.hurts = hurts_of(candidate, ranked.front());
  return ranked;
}

}  // namespace sextant
