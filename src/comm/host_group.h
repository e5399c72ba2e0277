// HostGroup: the ranks of a run as one of them sees the others, for what happens between steps: agreeing, adding up,
// waiting. One rank alone is a group too.
#pragma once

#include <span>
#include <string>

#include "comm/collectives.h"

namespace sextant {

class HostGroup {
 public:
  HostGroup() = default;  // alone
  HostGroup(Transport& transport, int tag);

  int rank() const { return rank_; }
  int size() const { return group_.size(); }
  bool leads() const { return rank_ == 0; }  // prints, and does what is done once

  void sum(std::span<double> numbers);  // over all ranks, the same bits on each
  void sum(std::span<int64_t> numbers);
  void largest(std::span<double> numbers);  // of each the largest over all ranks; NaN where one is
  void barrier();
  std::string from_leader(std::string text);  // the leader's, on every rank
  // The text of the first rank that has one, behind "rank N: " where there are several ranks, on every rank; empty when
  // none has.
  std::string first_text(const std::string& text);

 private:
  void arrive(const std::string* place);
  RankStatus* timed() const;  // null where it works beside the steps
  void reduce(std::span<std::byte> numbers, DType dtype, Reduction reduction);
  std::string from(int root, std::string text);

  Transport* transport_ = nullptr;
  int tag_ = 0;
  int rank_ = 0;
  Group group_{{0}, 0};
  // Places that the rank's status shows during sums, barriers and broadcasts.
  const std::string *adding_ = nullptr, *waiting_ = nullptr, *listening_ = nullptr;
};

}  // namespace sextant
