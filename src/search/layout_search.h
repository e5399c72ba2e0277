// LayoutSearch: all layouts of a run, in one or several variants of it, from their bounds to the price of those that
// may be among the best.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/threads.h"
#include "search/search.h"
#include "search/search_bound.h"
#include "search/search_memory.h"
#include "search/search_price.h"

namespace sextant {

bool is_faster(const Candidate& a, const Candidate& b);

// Of two that may not fit, the one that is nearer: what lacks memory of the host fits the device at least.
bool is_nearer_to_fit(const Candidate& a, const Candidate& b);

class LayoutSearch {
 public:
  // `runs`: the request's run, or that run with other ways to offload (offload_rungs.h).
  LayoutSearch(const SearchRequest& request, std::vector<RunConfig> runs);

  // Prices what may be among the best: of the usual layouts, and of all where none of these fits. Whether any fits, or
  // may fit and is too slow to be looked for.
  bool find_best();
  // Those that are slower than the best kept but need less memory than whatever is as fast.
  void find_front();
  void finish(SearchResult& result);

  bool found() const { return !priced_.empty(); }
  const SearchMemory& memory() const { return memory_; }
  // Whether a layout fits the device, and not its host.
  bool host_is_short() const { return host_is_short_; }

  // Of the layouts of so many devices, the one that needs least memory, priced.
  std::optional<Candidate> smallest(int64_t devices);

 private:
  // A layout on its way: bound after bound is known, each closer than the one before and dearer, then its price.
  struct Node {
    LayoutChoice choice;
    size_t variant = 0, order = 0;
    LeastCost least;
    Closeness close = Closeness::coarse;
  };
  struct Later {
    bool operator()(const Node& a, const Node& b) const {
      return a.least.seconds != b.least.seconds ? a.least.seconds > b.least.seconds : a.order > b.order;
    }
  };
  // A layout that is not worth it ends a round whose worth is decided by time alone, as later ones take longer.
  enum class NotWorth : uint8_t { ends, dropped };

  void say(const std::string& text) const;
  PriceRequest price_request() const;
  std::vector<Node> nodes_of(int64_t devices, Breadth breadth) const;
  void look_at(std::vector<Node> nodes);
  void price_best();
  void bound_family(std::vector<Node>& nodes);
  bool fits_host(const Node& node) const;
  bool may_fit(const Node& node) const;
  void keep_if_fits(Node& node);
  double kept_limit() const;
  bool is_dominated(const Node& node) const;
  void settle_all(std::vector<Candidate>& candidates);
  std::optional<Candidate> price(const Node& node) const;
  LeastCost bound(const Node& node, Closeness close);
  size_t advance(const std::function<bool(const Node&)>& worth, NotWorth otherwise);
  static std::optional<Closeness> closer(const Node& node);
  static std::string family_of(const Node& node);
  void refine(Node& node);
  void keep(std::optional<Candidate> candidate);
  template <class Body>
  void each_index(size_t count, const Body& body) {
    team_.parallel_for(static_cast<int64_t>(count), [&](int64_t i, int) { body(static_cast<size_t>(i)); });
  }

  const SearchRequest& request_;
  const SearchMemory memory_;
  const std::vector<RunConfig> runs_, trained_;  // the second without evaluation
  std::vector<std::unique_ptr<LayoutBounds>> bounds_;
  ThreadTeam team_;
  std::priority_queue<Node, std::vector<Node>, Later> queue_;
  std::vector<Candidate> priced_;  // that fit, fastest first
  SearchCounts counts_;
  bool host_is_short_ = false;
};

}  // namespace sextant
