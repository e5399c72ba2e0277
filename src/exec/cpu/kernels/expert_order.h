// The slots of tokens, or the rows that dispatch brought to a rank, brought together by expert.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/cpu/kernel.h"
#include "targets/slot_experts.h"

namespace sextant::cpu {

// The slots at(0), …, at(count - 1) in the order of their experts, stable; offsets[e] is where expert e's begin.
template <class At>
void sort_slots(const SlotExperts& experts, int64_t expert_count, int64_t count, const At& at, int32_t* order,
                int32_t* offsets) {
  std::fill_n(offsets, expert_count + 1, 0);
  for (int64_t i = 0; i < count; ++i)
    if (int64_t e = experts.of(at(i)); e >= 0) ++offsets[e + 1];
  for (int64_t e = 0; e < expert_count; ++e) offsets[e + 1] += offsets[e];
  for (int64_t i = 0; i < count; ++i)
    if (int64_t e = experts.of(at(i)); e >= 0) order[offsets[e]++] = static_cast<int32_t>(at(i));
  for (int64_t e = expert_count; e > 0; --e) offsets[e] = offsets[e - 1];  // each had moved on to the next one's
  offsets[0] = 0;
}

// The same in the order in which a weight's gradient adds them up (ops/expert_rows.cpp). Rows go by their places in
// queues, or by their tokens, and then by groups: those of a round are a piece of that.
inline void sort_for_sums(const KernelCall& call, const SlotExperts& experts, int64_t expert_count, int64_t count,
                          int32_t* order, int32_t* offsets) {
  bool by_token = call.attrs.integer_or("by_token", 0) != 0;
  int64_t groups = experts.rows > 0 && !by_token ? count / experts.rows : 1;
  auto by_place = [&](int64_t i) { return i % groups * experts.rows + i / groups; };
  sort_slots(experts, expert_count, count, by_place, order, offsets);
  if (!by_token) return;
  auto token = [&, all = call.attrs.integer("experts")](int32_t row) { return experts.chosen[row] / all; };
  call.team.parallel_for(expert_count, [&](int64_t e, int) {
    std::sort(order + offsets[e], order + offsets[e + 1],
              [&](int32_t a, int32_t b) { return token(a) == token(b) ? a < b : token(a) < token(b); });
  });
}

}  // namespace sextant::cpu
