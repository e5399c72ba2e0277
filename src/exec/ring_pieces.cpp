#include "exec/ring_pieces.h"

#include "base/error.h"
#include "ops/attention_window.h"

namespace sextant {

// The two sides are cut alike, so pieces are the same, or one lies wholly before the other.
std::vector<PiecePair> visible_pairs(const Program& program, const Op& op, const Coordinate& at, const Value& qkv,
                                     const Value& kv) {
  auto axis = program.mesh.find(op.attrs.text_or("axis", ""));
  Coordinate visitor = at;
  if (axis) {
    int n = program.mesh.size(*axis), step = static_cast<int>(op.attrs.integer("step"));
    int& place = visitor[static_cast<size_t>(*axis)];
    place = (place - step + n) % n;
  }
  KeyRange range = key_range_of(op.attrs);
  std::vector<PiecePair> pairs;
  for (const Span& q : held(qkv.shape[1], qkv.layout, 1, program.mesh, at)) {
    for (const Span& k : held(kv.shape[1], kv.layout, 1, program.mesh, visitor)) {
      if (k.global > q.global || k.count == 0) continue;
      if (k.global + k.count <= range.first(q.global)) continue;  // before what the first query sees
      BUG_IF(k.global < q.global && k.global + k.count > q.global, "{}: pieces of the sequence overlap", op.path);
      pairs.push_back({q, k, k.global == q.global ? 0 : k.count});
    }
  }
  return pairs;
}

}  // namespace sextant
