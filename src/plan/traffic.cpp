#include "plan/traffic.h"

#include <algorithm>

#include "base/error.h"
#include "ir/lane.h"
#include "mesh/placement.h"
#include "mesh/redistribution.h"
#include "ops/ops.h"

namespace sextant {

namespace {

// "dp,cp" or "0,3".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    words.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

// A rank's place in its group.
struct GroupPosition {
  std::vector<int> group;
  int64_t index;

  int64_t size() const { return static_cast<int64_t>(group.size()); }
};

GroupPosition position_along(const Program& program, int rank, std::string_view axes_text) {
  std::vector<int> axes;
  for (const std::string& name : words_of(axes_text)) axes.push_back(program.mesh.find(name).value());
  std::vector<int> group = group_of(program.mesh, rank, axes);
  int64_t index = std::find(group.begin(), group.end(), rank) - group.begin();
  return {std::move(group), index};
}

// Every rank reduces one part: it sends the other parts away, and then the sum of its own to all others. What does not
// divide makes the first parts one element longer.
int64_t all_reduce_elements(int64_t count, int64_t ranks, int64_t index) {
  int64_t own = count / ranks + (index < count % ranks ? 1 : 0);
  return count - own + own * (ranks - 1);
}

// All pieces of an all-to-all are as large as the largest.
int64_t largest_piece(const Program& program, const Value& in, const Value& out, const std::vector<int>& group) {
  int64_t most = 0;
  for (int from : group) {
    for (int to : group) {
      Coordinate sender = coordinate_of(program.mesh, from), receiver = coordinate_of(program.mesh, to);
      int64_t count = 0;
      for (const Box& box : common_boxes(in.shape, program.mesh, {in.layout, sender}, {out.layout, receiver}))
        count += box.count();
      most = std::max(most, count);
    }
  }
  return most;
}

SentBytes of_redistribution(const Program& program, const Op& op, int rank) {
  const Value &in = program[op.inputs[0]], &out = program[op.outputs[0]];
  std::string axes = op.attrs.text_or("axes", ""), transfer = op.attrs.text_or("transfer", "");
  GroupPosition context = position_along(program, rank, axes);
  int64_t others = context.size() - 1, elements = 0;
  if (transfer == name_of(Transfer::all_gather)) elements = in.local.count() * others;
  if (transfer == name_of(Transfer::reduce_scatter)) elements = out.local.count() * others;
  if (transfer == name_of(Transfer::all_reduce))
    elements = all_reduce_elements(out.local.count(), context.size(), context.index);
  if (transfer == name_of(Transfer::all_to_all)) elements = largest_piece(program, in, out, context.group) * others;
  return {std::move(axes), elements * size_of(in.dtype)};
}

SentBytes of_bucket(const Program& program, const Op& op, int rank) {
  std::string axes = op.attrs.text_or("axes", "");
  GroupPosition context = position_along(program, rank, axes);
  int64_t count = 0;
  for (ValueId id : op.outputs) count += program[id].local.count();
  return {std::move(axes),
          all_reduce_elements(count, context.size(), context.index) * size_of(program[op.outputs[0]].dtype)};
}

SentBytes of_stage_sum(const Program& program, const Op& op) {
  std::vector<std::string> stages = words_of(op.attrs.text_or("ranks", ""));
  auto own = std::find(stages.begin(), stages.end(), std::to_string(program.stage_rank));
  BUG_IF(own == stages.end(), "{} is not for pipeline rank {}", op.path, program.stage_rank);
  const Value& value = program[op.outputs[0]];
  int64_t elements =
      all_reduce_elements(value.local.count(), static_cast<int64_t>(stages.size()), own - stages.begin());
  return {std::string(kPipelineAxis), elements * size_of(value.dtype)};
}

}  // namespace

SentBytes bytes_to_send(const Program& program, const Op& op, int rank) {
  if (op.def == &ops::redistribute) return of_redistribution(program, op, rank);
  if (op.def == &ops::all_reduce_bucket) return of_bucket(program, op, rank);
  if (op.def == &ops::sum_stages) return of_stage_sum(program, op);
  if (op.def == &ops::send) return {std::string(kPipelineAxis), program[op.inputs[0]].local_bytes().n};
  if (op.def == &ops::ring_shift) {
    std::string axis = op.attrs.text_or("axis", "");
    bool alone = program.mesh.size(program.mesh.find(axis).value()) == 1;
    return {std::move(axis), alone ? 0 : program[op.inputs[0]].local_bytes().n};
  }
  return {};
}

std::map<std::string, int64_t> bytes_to_send(const Program& program, int rank) {
  std::map<std::string, int64_t> total;
  for (const Region& region : program.regions) {
    int64_t runs = std::count_if(program.schedule.begin(), program.schedule.end(), [&](const Action& action) {
      return action.region == region.kind && action.chunk == region.chunk;
    });
    for (const Op& op : region.ops) {
      SentBytes sent = bytes_to_send(program, op, rank);
      if (sent.bytes > 0)
        total[sent.axes] += (last_microbatch_only(op) ? std::min<int64_t>(runs, 1) : runs) * sent.bytes;
    }
  }
  return total;
}

}  // namespace sextant
