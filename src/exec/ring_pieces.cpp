#include "exec/ring_pieces.h"

#include "base/error.h"

namespace sextant {

namespace {

// Of two stripes of a sequence. Where the keys' stripe is the later one, its key i stands after query i, and query i +
// 1 is the first to see it.
PiecePair pair_of_stripes(Span q, Span k) {
  if (k.global > q.global) {
    q = {q.global_at(1), q.local + 1, q.count - 1, q.stride};
    k.count -= 1;
  }
  return {q, k, 0};
}

}  // namespace

// Pieces are stripes, or the same, or one lies wholly before the other.
std::vector<PiecePair> visible_pairs(const std::vector<Span>& queries, const std::vector<Span>& keys, KeyRange range) {
  std::vector<PiecePair> pairs;
  for (const Span& q : queries) {
    for (const Span& k : keys) {
      if (q.stride > 1) {
        if (PiecePair pair = pair_of_stripes(q, k); pair.q.count > 0) pairs.push_back(pair);
        continue;
      }
      if (k.global > q.global || k.count == 0) continue;
      if (k.global + k.count <= range.first(q.global)) continue;  // before what the first query sees
      BUG_IF(k.global < q.global && k.global + k.count > q.global, "pieces at {} and {} of a sequence overlap",
             k.global, q.global);
      pairs.push_back({q, k, k.global == q.global ? 0 : k.count});
    }
  }
  return pairs;
}

std::vector<PiecePair> visible_pairs(const Program& program, const Op& op, const Coordinate& at, const Value& qkv,
                                     const Value& kv) {
  auto axis = program.mesh.find(op.attrs.text_or("axis", ""));
  Coordinate visitor = at;
  if (axis) {
    int n = program.mesh.size(*axis), step = static_cast<int>(op.attrs.integer("step"));
    int& place = visitor[static_cast<size_t>(*axis)];
    place = (place - step + n) % n;
  }
  return visible_pairs(held(qkv.shape[1], qkv.layout, 1, program.mesh, at),
                       held(kv.shape[1], kv.layout, 1, program.mesh, visitor), key_range_of(op.attrs));
}

}  // namespace sextant
