#include "plan/memory_moments.h"

#include <algorithm>

#include "ir/lifetime.h"
#include "plan/buffer_parts.h"

namespace sextant {

namespace {

struct Span {
  int first = -1, last = -1;
};

std::vector<Span> buffer_spans(const Program& program, int ops) {
  std::vector<Span> spans(program.buffers.size());
  std::vector<Lifetime> live = lifetimes(program);
  auto widen = [&](int32_t buffer, int first, int last) {
    Span& span = spans[static_cast<size_t>(buffer)];
    span.first = span.first < 0 ? first : std::min(span.first, first);
    span.last = std::max(span.last, last);
  };
  for (const Value& value : program.values)
    if (value.buffer >= 0 && live[static_cast<size_t>(value.id)].used())
      widen(value.buffer, live[static_cast<size_t>(value.id)].first, live[static_cast<size_t>(value.id)].last);
  for (size_t i = 0; i < program.workspaces.size(); ++i)
    if (program.workspaces[i] >= 0) widen(program.workspaces[i], static_cast<int>(i), static_cast<int>(i));
  // A buffer with a slot for each of several microbatches is held throughout.
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].slots > 1) spans[i] = {0, ops - 1};
  return spans;
}

}  // namespace

std::vector<MemoryMoment> memory_moments(const Program& program) {
  std::vector<MemoryMoment> moments;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) moments.push_back({op.path, region.kind, {}});
  std::vector<Span> spans = buffer_spans(program, static_cast<int>(moments.size()));
  std::vector<MemoryPart> part_of = parts_of_buffers(program);
  // Bytes that begin minus bytes that end at each op, summed up from the first op to the last.
  std::vector<MemoryParts> change(moments.size() + 1);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.space != MemorySpace::device) continue;
    Span span =
        is_held_throughout(buffer.kind) && !moments.empty() ? Span{0, static_cast<int>(moments.size()) - 1} : spans[i];
    if (span.first < 0) continue;
    change[static_cast<size_t>(span.first)].*part_of[i] += buffer.total_bytes();
    change[static_cast<size_t>(span.last) + 1].*part_of[i] -= buffer.total_bytes();
  }
  MemoryParts now;
  for (size_t i = 0; i < moments.size(); ++i) {
    now.weights += change[i].weights, now.gradients += change[i].gradients, now.optimizer += change[i].optimizer;
    now.activations += change[i].activations, now.scratch += change[i].scratch,
        now.communication += change[i].communication;
    moments[i].parts = now;
  }
  return moments;
}

MemoryMoment peak_moment(const Program& program, int64_t arena_bytes) {
  MemoryMoment peak;
  for (MemoryMoment& moment : memory_moments(program))
    if (moment.parts.total() > peak.parts.total()) peak = std::move(moment);
  peak.parts.scratch += arena_bytes - peak.parts.total();
  return peak;
}

}  // namespace sextant
