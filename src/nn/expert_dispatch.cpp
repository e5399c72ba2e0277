#include "nn/expert_dispatch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.h"

namespace sextant {

namespace {

// Of what travels between ranks, so much is what passes through a rank's own memory: messages are slower by more than
// that inside a node, and by far between nodes.
constexpr double kShareOfOwnMemory = 1.0 / 16;

// The load times its share of what is balanced, rounded up; at most `most`.
int64_t planned(double share, double balanced, int64_t most) {
  double rows = std::ceil(share * balanced);
  return rows < static_cast<double>(most) ? static_cast<int64_t>(rows) : most;
}

DispatchRows rows_by(const RoutedTokens& r, ExpertDispatch dispatch, double capacity) {
  DispatchRows rows{.dispatch = dispatch, .most = r.tokens * r.most_on_a_rank()};
  if (r.most_of_expert > 0) rows.most = std::min(rows.most, r.experts / r.ranks * r.most_of_expert);
  auto tokens = static_cast<double>(r.tokens);
  double balanced = tokens * static_cast<double>(r.per_token) / static_cast<double>(r.ranks);
  rows.capacity = capacity == 0 ? rows.most : planned(capacity, balanced, rows.most);
  if (dispatch == ExpertDispatch::tokens) {
    // A token's rows are not divided: there are enough for one.
    rows.capacity = std::max(rows.capacity, r.most_on_a_rank());
    int64_t all = std::min(r.tokens, rows.capacity);
    rows.copies = capacity == 0 ? all : planned(capacity, tokens * r.reaches_a_rank(), all);
    rows.tokens = std::min(rows.copies, rows.capacity / r.most_on_a_rank());
    bool serves_all = rows.capacity >= rows.most && rows.copies == all;
    rows.rounds = serves_all ? 1 : ceil_div(r.tokens, rows.tokens);
    return rows;
  }
  rows.copies = dispatch == ExpertDispatch::gather ? r.tokens : rows.capacity;
  rows.rounds = ceil_div(rows.most, rows.capacity);
  return rows;
}

}  // namespace

int64_t RoutedTokens::most_on_a_rank() const {
  return std::min(per_token, experts / ranks);
}

double RoutedTokens::reaches_a_rank() const {
  // Groups that are whole ranks' are drawn first; where a rank has several, which of them does not matter much.
  double open = expert_groups <= ranks ? static_cast<double>(keep_groups) / static_cast<double>(expert_groups) : 1;
  double among = static_cast<double>(experts) * open;
  auto here = static_cast<double>(experts) / static_cast<double>(ranks);
  double none = 1;  // of so many draws without return
  for (int64_t i = 0; i < per_token; ++i)
    none *= std::max(0.0, among - here - static_cast<double>(i)) / (among - static_cast<double>(i));
  return open * (1 - none);
}

double DispatchRows::cost() const {
  auto travelling = static_cast<double>(copies);
  if (dispatch != ExpertDispatch::tokens) return travelling;
  return travelling + kShareOfOwnMemory * static_cast<double>(copies + capacity);  // read, and written as rows
}

DispatchRows dispatch_rows(const RoutedTokens& routed, ExpertDispatch dispatch, double capacity) {
  // Rows say of which token they are beside of which expert, in one number.
  bool numbered = routed.tokens < std::numeric_limits<int32_t>::max() / routed.experts;
  if (dispatch != ExpertDispatch::automatic) return rows_by(routed, dispatch, capacity);
  DispatchRows best = rows_by(routed, ExpertDispatch::rows, capacity);
  for (ExpertDispatch other : {ExpertDispatch::gather, ExpertDispatch::tokens}) {
    if (other == ExpertDispatch::tokens && !numbered) continue;
    DispatchRows rows = rows_by(routed, other, capacity);
    if (rows.cost() < best.cost()) best = rows;
  }
  return best;
}

}  // namespace sextant
