// CommWorld: this rank among all ranks of a benchmark, and the few things they do together beside what is measured:
// meet, follow rank 0, collect numbers. Alone it does nothing. All ranks make the same calls in the same order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/collectives.h"

namespace sextant {

class CommWorld {
 public:
  explicit CommWorld(Transport* transport);  // null: the only rank

  int rank() const { return group_.self; }
  int size() const { return group_.size(); }
  Transport* transport() const { return transport_; }
  const Group& group() const { return group_; }

  void meet();
  bool agree(bool go_on);  // what rank 0 says
  std::string agree(std::string text);
  // Everybody's numbers, rank after rank, on every rank; as many from each.
  std::vector<double> gather(std::span<const double> own);
  double largest(double own);
  double sum(double own);

 private:
  Transport* transport_;
  Group group_;
};

}  // namespace sextant
