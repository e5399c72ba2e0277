#include "exec/cpu/kernels/boxes.h"

#include <cstring>

namespace sextant::cpu {

namespace {

// Calls row(from offset, to offset, count) for every innermost row of a box, offsets in elements.
template <class Row>
void for_rows(const Box& box, const LocalShape* from, const LocalShape* to, const Row& row) {
  size_t rank = box.extent.size();
  if (box.count() == 0) return;
  std::vector<int64_t> index(rank, 0);
  int64_t width = rank == 0 ? 1 : box.extent[rank - 1];
  for (;;) {
    auto offset = [&](const LocalShape& shape, const std::vector<int64_t>& start) {
      int64_t at = 0;
      for (size_t d = 0; d < rank; ++d) at = at * shape[static_cast<int>(d)] + start[d] + index[d];
      return at;
    };
    row(from ? offset(*from, box.from) : 0, to ? offset(*to, box.to) : 0, width);
    if (rank < 2) return;
    size_t d = rank - 1;  // the innermost dim is the row itself
    while (d-- > 0) {
      if (++index[d] < box.extent[d]) break;
      index[d] = 0;
      if (d == 0) return;
    }
  }
}

void append(std::vector<Run>& runs, Run run) {
  if (!runs.empty()) {
    Run& last = runs.back();
    if (last.from + last.bytes == run.from && last.to + last.bytes == run.to) {
      last.bytes += run.bytes;
      return;
    }
  }
  runs.push_back(run);
}

}  // namespace

std::vector<Run> runs_between(const std::vector<Box>& boxes, const LocalShape& from, const LocalShape& to,
                              int64_t element) {
  std::vector<Run> runs;
  for (const Box& box : boxes)
    for_rows(box, &from, &to, [&](int64_t f, int64_t t, int64_t count) {
      append(runs, {f * element, t * element, count * element});
    });
  return runs;
}

std::vector<Run> runs_to_packed(const std::vector<Box>& boxes, const LocalShape& from, int64_t element,
                                int64_t packed_at) {
  std::vector<Run> runs;
  for (const Box& box : boxes)
    for_rows(box, &from, nullptr, [&](int64_t f, int64_t, int64_t count) {
      append(runs, {f * element, packed_at, count * element});
      packed_at += count * element;
    });
  return runs;
}

std::vector<Run> runs_from_packed(const std::vector<Box>& boxes, const LocalShape& to, int64_t element,
                                  int64_t packed_at) {
  std::vector<Run> runs;
  for (const Box& box : boxes)
    for_rows(box, nullptr, &to, [&](int64_t, int64_t t, int64_t count) {
      append(runs, {packed_at, t * element, count * element});
      packed_at += count * element;
    });
  return runs;
}

void copy_runs(const std::vector<Run>& runs, const std::byte* from, std::byte* to) {
  for (const Run& run : runs) std::memcpy(to + run.to, from + run.from, static_cast<size_t>(run.bytes));
}

}  // namespace sextant::cpu
