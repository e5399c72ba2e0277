#include "passes/overlap.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/alias.h"
#include "ir/lane.h"
#include "ops/ops.h"
#include "passes/gradient_history.h"
#include "passes/hops.h"
#include "passes/one_block_ahead.h"

namespace sextant {

namespace {

// Reductions of one region, in the order in which their gradients are finished.
struct Reduction {
  Op op;
  int after;  // the op of the region that finishes the gradient
};

struct Bucket {
  std::vector<Reduction> reductions;
  int64_t bytes = 0;
};

class ReductionHoist {
 public:
  ReductionHoist(Program& program, const Overlap& options) : program_(program), options_(options) {}

  void run() {
    GradientHistory history(program_);
    std::map<int, std::vector<Reduction>> by_region;
    for (Region& region : program_.regions) {
      if (region.kind != RegionKind::update) continue;
      std::vector<Op> left;
      for (Op& op : region.ops) {
        bool reduces = (is_hop(op, Transfer::all_reduce) && writes_into(op)) || is_hop(op, Transfer::reduce_scatter);
        auto place = reduces ? history.finished(op.inputs[0]) : OpPosition{};
        if (place.region < 0)
          left.push_back(std::move(op));
        else
          by_region[place.region].push_back({std::move(op), place.op});
      }
      region.ops = std::move(left);
    }
    for (auto& [region, reductions] : by_region)
      insert(program_.regions[static_cast<size_t>(region)], std::move(reductions));
  }

 private:
  void insert(Region& region, std::vector<Reduction> reductions) {
    std::stable_sort(reductions.begin(), reductions.end(),
                     [](const Reduction& a, const Reduction& b) { return a.after < b.after; });
    std::multimap<int, Op> after;
    std::map<std::pair<DType, std::vector<std::string>>, Bucket> open;  // by type and axes
    for (Reduction& reduction : reductions) {
      reduction.op.runs_for = RunsFor::last_microbatch;
      if (options_.lanes == Lanes::on) reduction.op.lane = Lane::comm;
      if (is_hop(reduction.op, Transfer::reduce_scatter)) {
        after.emplace(reduction.after, std::move(reduction.op));
        continue;
      }
      Bucket& bucket = open[{program_[reduction.op.inputs[0]].dtype, reduction.op.attrs.names("axes")}];
      bucket.bytes += program_[reduction.op.inputs[0]].local_bytes().n;
      bucket.reductions.push_back(std::move(reduction));
      if (bucket.bytes >= options_.bucket.n) close(std::exchange(bucket, {}).reductions, after);
    }
    for (const auto& [kind, bucket] : open)
      if (!bucket.reductions.empty()) close(bucket.reductions, after);
    std::vector<Op> ops;
    for (size_t i = 0; i < region.ops.size(); ++i) {
      ops.push_back(std::move(region.ops[i]));
      auto [begin, end] = after.equal_range(static_cast<int>(i));
      for (auto at = begin; at != end; ++at) ops.push_back(std::move(at->second));
    }
    region.ops = std::move(ops);
  }

  // One op in place of the bucket's, behind the last gradient that is finished.
  void close(const std::vector<Reduction>& bucket, std::multimap<int, Op>& after) const {
    Op op{.def = &ops::all_reduce_bucket, .phase = Phase::weight_gradient, .path = bucket.front().op.path + ".bucket"};
    op.stage = bucket.front().op.stage;
    op.attrs = {{"axes", bucket.front().op.attrs.names("axes")},
                {"ranks", bucket.front().op.attrs.integer("ranks")},
                {"count", static_cast<int64_t>(bucket.size())}};
    op.runs_for = RunsFor::last_microbatch;
    if (options_.lanes == Lanes::on) op.lane = Lane::comm;
    for (const Reduction& reduction : bucket) {
      op.inputs.push_back(reduction.op.inputs[0]);
      op.outputs.push_back(reduction.op.outputs[0]);
    }
    after.emplace(bucket.back().after, std::move(op));
  }

  Program& program_;
  const Overlap& options_;
};

bool reads(const Op& op, ValueId id) {
  return std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end();
}

// Behind the op of the region that makes the value; 0 where none does.
size_t behind_maker(const std::vector<Op>& ops, size_t end, ValueId id) {
  for (size_t i = end; i-- > 0;)
    if (std::ranges::count(ops[i].outputs, id) > 0) return i + 1;
  return 0;
}

// Weights are gathered from what is stored, or was made of it in fp8, so they can be asked for at any time.
void gather_ahead(const Program& program, Region& region) {
  for (size_t i = 0; i < region.ops.size(); ++i) {
    if (!is_hop(region.ops[i], Transfer::all_gather)) continue;
    ValueId from = region.ops[i].inputs[0];
    if (program[from].kind != ValueKind::parameter && program[from].kind != ValueKind::quantized) continue;
    region.ops[i].lane = Lane::comm;
    size_t to = std::max(one_block_ahead(region.ops, i), behind_maker(region.ops, i, from));
    std::rotate(region.ops.begin() + static_cast<std::ptrdiff_t>(to),
                region.ops.begin() + static_cast<std::ptrdiff_t>(i),
                region.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

// The term that an op adds onto a sum, where the op does nothing else; else nullopt.
std::optional<ValueId> added_term(const Op& op) {
  std::vector<Alias> aliases = aliases_of(op);
  bool adds = op.inputs.size() == 2 && aliases.size() == 1 && aliases[0].rule == Alias::Rule::must;
  return adds ? std::optional(op.inputs[static_cast<size_t>(1 - aliases[0].input)]) : std::nullopt;
}

// A scattered gradient is needed only when the next one is added: its sum can wait for the end of the next block.
void add_up_later(Region& region) {
  std::map<ValueId, Op*> scattered;
  for (Op& op : region.ops)
    if (is_hop(op, Transfer::reduce_scatter)) scattered[op.outputs[0]] = &op;
  for (const Op& op : region.ops)
    if (auto term = added_term(op); term && scattered.contains(*term)) scattered[*term]->lane = Lane::comm;
  for (size_t i = region.ops.size(); i-- > 0;) {
    if (auto term = added_term(region.ops[i]); !term || !scattered.contains(*term)) continue;
    size_t to = i + 1;
    while (to < region.ops.size() && region.ops[to].block == region.ops[i].block) ++to;
    if (to < region.ops.size())
      for (int next = region.ops[to].block; to < region.ops.size() && region.ops[to].block == next;) ++to;
    // Whoever reads the sum comes after it.
    for (size_t k = i + 1; k < to; ++k)
      if (reads(region.ops[k], region.ops[i].outputs[0])) to = k;
    std::rotate(region.ops.begin() + static_cast<std::ptrdiff_t>(i),
                region.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                region.ops.begin() + static_cast<std::ptrdiff_t>(to));
  }
}

bool runs_in_pair(const Program& program, const Region& region) {
  bool found = false;
  for_each_unit(program.schedule, [&](std::span<const Action> unit) {
    found = found || (is_pair(unit) && std::ranges::any_of(unit, [&](const Action& action) {
                        return action.region == region.kind && action.chunk == region.chunk;
                      }));
  });
  return found;
}

// A message between ranks of one stage that does nothing else; an op that computes on the way hides its own.
bool only_travels(const Program& program, const Op& op) {
  std::optional<Message> message = local_message(program, op);
  return message && !message->between_stages() && !op.def->holds_inputs && local_cost(program, op).flops.n == 0;
}

// A message that is read in its own region has arrived when the region ends: the next microbatch finds the lane free of
// it. Messages that are sent once per step stay: a wait in another microbatch would not cover the messages before them.
void travel_beside(const Program& program, Region& region) {
  for (size_t i = 0; i < region.ops.size(); ++i) {
    Op& op = region.ops[i];
    if (on_comm_lane(op) || once_per_step(op) || op.outputs.empty() || !only_travels(program, op)) continue;
    bool read_here = std::any_of(region.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, region.ops.end(),
                                 [&](const Op& later) { return reads(later, op.outputs[0]); });
    if (read_here) op.lane = Lane::comm;
  }
}

}  // namespace

void overlap(Program& program, const Overlap& options) {
  for (Region& region : program.regions) {
    if (region.kind == RegionKind::update || options.lanes == Lanes::off) continue;
    gather_ahead(program, region);
    if (region.kind != RegionKind::forward) add_up_later(region);
    if (runs_in_pair(program, region)) travel_beside(program, region);
  }
  ReductionHoist(program, options).run();
}

}  // namespace sextant
