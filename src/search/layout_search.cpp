#include "search/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "run/programs.h"
#include "schedule/schedules.h"
#include "search/layout_overrides.h"

namespace sextant {

namespace {

constexpr int64_t kBatch = 16;  // nodes at once; not the number of threads, so that results do not depend on it
// The front of memory against time: as far as this, as fine as this, with so many layouts priced for it at most.
constexpr double kFrontReach = 1.5, kFrontStep = 0.97;
constexpr size_t kFrontPrices = 40;
constexpr size_t kSmallest = 4;  // priced to find the smallest

// Searched modes are in the order of how much they keep.
bool keeps_less(RecomputeMode mode, RecomputeMode other) {
  return mode > other;
}

std::vector<RunConfig> without_evaluation(const std::vector<RunConfig>& runs) {
  std::vector<RunConfig> trained;
  for (const RunConfig& run : runs) trained.push_back(without_evaluation(run));
  return trained;
}

std::string name_of(size_t variant, const LayoutChoice& choice) {
  return fmt::format("{} {}", variant, overrides_text(choice));
}

// Of candidates from the fastest on: each needs less memory than all before it.
std::vector<Candidate> front_of(const std::vector<Candidate>& candidates) {
  std::vector<Candidate> front;
  for (const Candidate& candidate : candidates)
    if (front.empty() || candidate.peak_bytes < front.back().peak_bytes) front.push_back(candidate);
  return front;
}

}  // namespace

bool is_faster(const Candidate& a, const Candidate& b) {
  return a.seconds != b.seconds ? a.seconds < b.seconds : a.peak_bytes < b.peak_bytes;
}

bool is_nearer_to_fit(const Candidate& a, const Candidate& b) {
  if (a.fits != b.fits) return a.fits;
  if (a.fits_device != b.fits_device) return a.fits_device;
  if (a.fits_device && !a.fits) return a.lacking_bytes < b.lacking_bytes;
  return a.peak_bytes < b.peak_bytes;
}

LayoutSearch::LayoutSearch(const SearchRequest& request, std::vector<RunConfig> runs)
    : request_(request),
      memory_(search_memory(request)),
      runs_(std::move(runs)),
      trained_(without_evaluation(runs_)),
      team_(request.threads) {
  for (const RunConfig& run : trained_)
    bounds_.push_back(std::make_unique<LayoutBounds>(LayoutBounds::Subject{
        run, request.spec, request.machine, request.profile, request.target, request.imbalance.ratio}));
}

bool LayoutSearch::find_best() {
  auto nothing = [&] { return !found() && queue_.empty(); };
  std::vector<Node> usual = nodes_of(request_.devices, Breadth::usual);
  std::unordered_set<std::string> seen;
  for (const Node& node : usual) seen.insert(name_of(node.variant, node.choice));
  look_at(std::move(usual));
  price_best();
  if (!nothing()) return true;
  std::vector<Node> more = nodes_of(request_.devices, Breadth::wide);
  std::erase_if(more, [&](const Node& node) { return seen.contains(name_of(node.variant, node.choice)); });
  look_at(std::move(more));
  price_best();
  return !nothing();
}

void LayoutSearch::find_front() {
  if (priced_.empty()) return;
  size_t until = counts_.priced + kFrontPrices;
  auto worth = [&](const Node& node) {
    return counts_.priced < until && node.least.seconds < kFrontReach * priced_.front().seconds && !is_dominated(node);
  };
  while (advance(worth, NotWorth::dropped) > 0)
    say(fmt::format("{} priced for the front of memory against time", counts_.priced));
}

void LayoutSearch::finish(SearchResult& result) {
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

std::optional<Candidate> LayoutSearch::smallest(int64_t devices) {
  std::vector<Node> nodes = nodes_of(devices, Breadth::wide);
  // Of layouts that are otherwise alike, these need least.
  std::erase_if(nodes, [](const Node& node) {
    const LayoutChoice& c = node.choice;
    return c.recompute != RecomputeMode::full || c.microbatch > 1 || c.mesh.zero_ranks > 0 ||
           c.schedule != ScheduleKind::one_f_one_b;
  });
  each_index(nodes.size(), [&](size_t i) { nodes[i].least = bound(nodes[i], Closeness::coarse); });
  std::ranges::stable_sort(nodes, std::less{}, [](const Node& node) { return node.least.bytes; });
  size_t on_host = 0, beyond_host = 0;  // the first of each, as it is the host that may lack memory
  std::erase_if(nodes, [&](const Node& node) { return ++(fits_host(node) ? on_host : beyond_host) > kSmallest; });
  std::vector<std::optional<Candidate>> prices(nodes.size());
  each_index(nodes.size(), [&](size_t i) { prices[i] = price(nodes[i]); });
  std::optional<Candidate> least;
  for (auto& p : prices)
    if (p && (!least || is_nearer_to_fit(*p, *least))) least = std::move(p);
  return least;
}

void LayoutSearch::say(const std::string& text) const {
  if (request_.progress) request_.progress(text);
}

PriceRequest LayoutSearch::price_request() const {
  return {request_.spec, request_.machine, request_.profile, request_.target, request_.imbalance, memory_.limit};
}

std::vector<LayoutSearch::Node> LayoutSearch::nodes_of(int64_t devices, Breadth breadth) const {
  std::vector<Node> nodes;
  for (size_t v = 0; v < runs_.size(); ++v)
    for (LayoutChoice& choice :
         layouts_of({runs_[v], request_.spec, request_.machine, devices, breadth, &request_.limits}))
      nodes.push_back({.choice = std::move(choice), .variant = v});
  return nodes;
}

// Puts all that may fit in order.
void LayoutSearch::look_at(std::vector<Node> nodes) {
  std::map<std::string, std::vector<Node>> families;
  for (Node& node : nodes) {
    node.order = counts_.considered++;
    families[family_of(node)].push_back(std::move(node));
  }
  say(fmt::format("{} layouts", nodes.size()));
  std::vector<std::vector<Node>> lists;
  for (auto& [name, family] : families) lists.push_back(std::move(family));
  each_index(lists.size(), [&](size_t i) { bound_family(lists[i]); });
  for (std::vector<Node>& family : lists)
    for (Node& node : family) keep_if_fits(node);
}

void LayoutSearch::price_best() {
  auto worth = [&](const Node& node) { return node.least.seconds < kept_limit(); };
  while (advance(worth, NotWorth::ends) > 0) say(fmt::format("{} priced, {} to go", counts_.priced, queue_.size()));
}

void LayoutSearch::settle_all(std::vector<Candidate>& candidates) {
  each_index(candidates.size(), [&](size_t i) { settle(candidates[i], price_request(), request_.token_budget); });
  std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.fits; });
}

// Layouts that differ in microbatch and recompute only.
std::string LayoutSearch::family_of(const Node& node) {
  LayoutChoice choice = node.choice;
  choice.microbatch = 1, choice.recompute = RecomputeMode::none;
  return name_of(node.variant, choice);
}

// More sequences at once, or less computed again, need no less memory: what is larger than one that is too large is
// not asked. Except with a single microbatch, whose gradients are not summed up and need not stay.
void LayoutSearch::bound_family(std::vector<Node>& nodes) {
  std::ranges::stable_sort(nodes, [&](const Node& a, const Node& b) {
    const LayoutChoice &first = a.choice, &second = b.choice;
    return first.recompute != second.recompute ? keeps_less(first.recompute, second.recompute)
                                               : first.microbatch < second.microbatch;
  });
  int64_t too_large = std::numeric_limits<int64_t>::max();  // a microbatch, with the mode before or the same
  for (Node& node : nodes) {
    bool single = node.choice.microbatch * node.choice.mesh.dp == request_.run.batch.sequences;
    node.least = nowhere();
    if (node.choice.microbatch >= too_large && !single) continue;
    node.least = bound(node, Closeness::coarse);
    if (!single && !may_fit(node)) too_large = node.choice.microbatch;
  }
}

bool LayoutSearch::fits_host(const Node& node) const {
  const int64_t devices = node.choice.devices();
  return node.least.host_bytes <= request_.machine.host_bytes_of(devices) &&
         node.least.nvme_bytes <= request_.machine.nvme_bytes_of(devices);
}

bool LayoutSearch::may_fit(const Node& node) const {
  return node.least.bytes <= memory_.limit && fits_host(node);
}

void LayoutSearch::keep_if_fits(Node& node) {
  host_is_short_ = host_is_short_ || (node.least.bytes <= memory_.limit && !fits_host(node));
  if (may_fit(node))
    queue_.push(std::move(node));
  else
    ++counts_.too_large;
}

// Seconds below which a layout is kept.
double LayoutSearch::kept_limit() const {
  double kept = priced_.size() < request_.keep ? kNever : priced_[request_.keep - 1].seconds;
  return std::min(kept, request_.below_seconds);
}

bool LayoutSearch::is_dominated(const Node& node) const {
  return std::ranges::any_of(priced_, [&](const Candidate& p) {
    return p.seconds * kFrontStep <= node.least.seconds &&
           static_cast<double>(p.peak_bytes) * kFrontStep <= node.least.bytes;
  });
}

std::optional<Candidate> LayoutSearch::price(const Node& node) const {
  try {
    return price_layout(with_choice(runs_[node.variant], node.choice), price_request());
  } catch (const UserError&) {
    return std::nullopt;  // a layout that some pass cannot make
  }
}

// A layout that some pass cannot make fits nowhere.
LeastCost LayoutSearch::bound(const Node& node, Closeness close) {
  try {
    return bounds_[node.variant]->bound(node.choice, close);
  } catch (const UserError&) {
    return nowhere();
  }
}

// The next layouts, by their bounds, that are worth it: each comes one step further. How many there were.
size_t LayoutSearch::advance(const std::function<bool(const Node&)>& worth, NotWorth otherwise) {
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
      prices[i] = price(next[i]);
  });
  for (size_t i = 0; i < next.size(); ++i) {
    if (std::optional<Closeness> then = closer(next[i])) {
      next[i].close = *then;
      keep_if_fits(next[i]);
    } else {
      keep(std::move(prices[i]));
    }
  }
  std::ranges::sort(priced_, is_faster);
  return next.size();
}

// The bound behind the one that is known; nullopt where the price comes next.
std::optional<Closeness> LayoutSearch::closer(const Node& node) {
  if (node.close == Closeness::coarse && node.choice.mesh.zero >= 2) return Closeness::sent;
  if (node.close < Closeness::tight) return Closeness::tight;
  bool pairs = find_schedule(node.choice.schedule)->pairs;
  return pairs && node.close == Closeness::tight ? std::optional(Closeness::walked) : std::nullopt;
}

void LayoutSearch::refine(Node& node) {
  const LeastCost tighter = bound(node, *closer(node));
  for (double LeastCost::*part :
       {&LeastCost::seconds, &LeastCost::bytes, &LeastCost::host_bytes, &LeastCost::nvme_bytes})
    node.least.*part = std::max(node.least.*part, tighter.*part);
}

void LayoutSearch::keep(std::optional<Candidate> candidate) {
  ++counts_.priced;
  host_is_short_ = host_is_short_ || (candidate && candidate->fits_device && !candidate->fits);
  if (!candidate || !candidate->fits)
    ++counts_.did_not_fit;
  else
    priced_.push_back(std::move(*candidate));
}

}  // namespace sextant
