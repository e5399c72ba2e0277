#include "plan/traffic.h"

#include <algorithm>

#include "base/error.h"
#include "ir/lane.h"

namespace sextant {

namespace {

GroupPosition position_of(const Program& program, const Message& message, int rank) {
  if (!message.stages.empty()) {
    auto own = std::ranges::find(message.stages, program.stage_rank);
    BUG_IF(own == message.stages.end(), "a sum over other pipeline ranks than {}", program.stage_rank);
    return {static_cast<int64_t>(message.stages.size()), own - message.stages.begin()};
  }
  std::vector<int> group = group_of(program.mesh, rank, message.axes);
  return {static_cast<int64_t>(group.size()), std::ranges::find(group, rank) - group.begin()};
}

}  // namespace

SentBytes bytes_to_send(const Program& program, const Op& op, int rank) {
  std::optional<Message> message = local_message(program, op);
  if (!message) return {};
  int64_t elements = elements_sent(message->kind, message->bytes.n / message->element_bytes,
                                   message->part.n / message->element_bytes, position_of(program, *message, rank));
  return {message->between_stages() ? pipeline_name(program.mesh) : axes_text(message->axes),
          elements * message->element_bytes};
}

std::map<std::string, int64_t> bytes_to_send(const Program& program, int rank) {
  std::map<std::string, int64_t> total;
  for (const Region& region : program.regions) {
    int64_t runs = std::count_if(program.schedule.begin(), program.schedule.end(), [&](const Action& action) {
      return action.region == region.kind && action.chunk == region.chunk;
    });
    for (const Op& op : region.ops) {
      SentBytes sent = bytes_to_send(program, op, rank);
      if (sent.bytes > 0) total[sent.axes] += (once_per_step(op) ? std::min<int64_t>(runs, 1) : runs) * sent.bytes;
    }
  }
  return total;
}

}  // namespace sextant
