// A Program's tokens that are sent to the ranks of their experts: which values hold them as rows, and which share of
// those rows holds a token. A Program reserves more rows than arrive with balanced routing. Software that sends and
// computes exact sizes has only the share.
#pragma once

#include <vector>

#include "ir/program.h"

namespace sextant {

struct RoutedRows {
  double filled = 1;                   // with balanced routing
  double per_token = 0;                // experts of a token; 0: no tokens are sent
  double groups = 1, keep_groups = 1;  // a token's experts are in keep_groups of so many groups (node-limited routing)
  std::vector<bool> held = {};         // by value: whether it has such rows
  std::vector<bool> tokens = {};       // by value: whether rows are made of it, or it of rows

  bool in(ValueId id) const { return !held.empty() && held[static_cast<size_t>(id)]; }
  bool tokens_in(ValueId id) const { return !tokens.empty() && tokens[static_cast<size_t>(id)]; }
};

RoutedRows routed_rows(const Program& program);

// Of `bytes` with a copy of a token for each of its experts: what is left with a copy for each of `places` that hold
// one of them, when experts are drawn evenly among the places that routing leaves to a token.
double one_copy_for_each(double bytes, const RoutedRows& rows, double places);

}  // namespace sextant
