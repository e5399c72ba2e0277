#include "exec/sim/rank_walk.h"

#include <algorithm>

#include "base/error.h"
#include "ir/lane.h"

namespace sextant {

size_t StageMessages::Hash::operator()(const Key& key) const {
  auto mixed = static_cast<uint64_t>(key.tag);
  for (int part : {key.from, key.to, key.microbatch})
    mixed = mixed * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(part);
  return static_cast<size_t>(mixed ^ (mixed >> 29));
}

std::optional<StageMessages::InFlightMessage> StageMessages::find(const Key& key) const {
  auto found = messages_.find(key);
  return found == messages_.end() ? std::nullopt : std::optional(found->second);
}

void StageMessages::arrive(const std::string& name, double at) {
  StageBarrier& meeting = meetings_[name];
  ++meeting.present;
  meeting.last = std::max(meeting.last, at);
}

std::optional<double> StageMessages::all_there(const std::string& name, size_t of) const {
  auto found = meetings_.find(name);
  if (found == meetings_.end() || found->second.present < of) return std::nullopt;
  return found->second.last;
}

namespace {

bool along_pipeline(const OpPrice& price) {
  return price.axes == kPipelineAxis || price.axes.starts_with(std::string(kPipelineAxis) + ",");
}

// How many pipeline ranks take part in a sum between stages.
size_t participants(const Program& program, const Op& op, const OpPrice& price) {
  if (price.message == Message::Kind::stage_sum) {
    std::string ranks = op.attrs.text_or("ranks", "");
    return static_cast<size_t>(std::count(ranks.begin(), ranks.end(), ',')) + 1;
  }
  auto axis = program.mesh.find(kPipelineAxis);
  return axis ? static_cast<size_t>(program.mesh.size(*axis)) : 1;
}

PricedOp price_op(const Program& program, const Op& op, Pricer& pricer) {
  PricedOp priced{.op = &op, .price = pricer.price(program, op), .last_only = last_microbatch_only(op), .joins = {}};
  // A profile that does not overlap these waits for each.
  bool gradient = op.phase == Phase::weight_gradient || priced.price.message == Message::Kind::reduce_scatter ||
                  priced.price.message == Message::Kind::all_reduce;
  bool letter = priced.price.message == Message::Kind::send || priced.price.message == Message::Kind::receive;
  if (letter) priced.peer = static_cast<int>(op.attrs.integer("peer")), priced.tag = op.attrs.integer("tag");
  const SoftwareProfile& profile = pricer.profile();
  bool waits = (profile.zero_waits && priced.price.message == Message::Kind::reduce_scatter) ||
               (profile.zero_broadcasts && priced.price.message == Message::Kind::all_gather);
  priced.on_lane = on_comm_lane(op) && !waits && (gradient ? profile.overlap_gradients : profile.overlap_gathers);
  return priced;
}

// Whether `op` could have begun with the one before it.
bool independent(const PricedOp& before, const PricedOp& op) {
  return std::ranges::none_of(op.op->inputs,
                              [&](ValueId id) { return std::ranges::count(before.op->outputs, id) > 0; });
}

// A collective of tensor parallelism stands between products on the compute lane, and its profile may hide a part of
// it: of each that it cuts up beside the products, or all that takes no longer than the product before it, where it
// does not wait for that one.
double waited_seconds(const PricedOp& op, const PricedOp* before, const Pricer& pricer) {
  // The rest is the first piece, which nothing hides, and what products lose in pieces. By torchtitan's two ratios
  // (tests/validate/effects).
  constexpr double kLeftWhenCutUp = 0.6;
  const double seconds = op.price.seconds, speed = pricer.efficiency().overlap;  // of a product beside a message
  if (op.price.axes != kTensorAxis) return seconds;
  if (pricer.profile().overlap_tensor) return seconds * kLeftWhenCutUp;
  if (!pricer.profile().overlap_tensor_backward || !before || before->price.message || !independent(*before, op))
    return seconds;
  return seconds - std::min(seconds * speed, before->price.seconds);
}

}  // namespace

std::vector<PricedOp> price_region(const Program& program, const Region& region, Pricer& pricer) {
  std::vector<PricedOp> ops;
  ops.reserve(region.ops.size());
  const PricedOp* before = nullptr;  // on the compute lane, in every microbatch
  for (const Op& op : region.ops) {
    PricedOp& priced = ops.emplace_back(price_op(program, op, pricer));
    if (priced.on_lane) continue;
    if (priced.price.message) priced.waited_s = waited_seconds(priced, before, pricer);
    if (!priced.last_only) before = &priced;
  }
  return ops;
}

RankWalk::RankWalk(const Program& program, Pricer& pricer, const SimOptions& options)
    : program_(program),
      options_(options),
      profile_(pricer.profile()),
      compute_speed_beside_messages_(pricer.efficiency().overlap),
      random_(options.seed, "simulated jitter", static_cast<uint64_t>(program.stage_rank)) {
  price_all(pricer);
}

void RankWalk::price_all(Pricer& pricer) {
  std::map<ValueId, int> lane_outputs;
  int number = 0;
  for (const Region& region : program_.regions) {
    PricedRegion& priced = regions_.emplace_back();
    priced.region = &region;
    priced.first_number = static_cast<size_t>(number);
    priced.last_microbatch = last_microbatch(program_, region);
    priced.ops = price_region(program_, region, pricer);
    for (PricedOp& p : priced.ops) {
      if (p.price.message && p.peer < 0 && along_pipeline(p.price)) p.meets = participants(program_, *p.op, p.price);
      if (p.on_lane)
        for (ValueId id : p.op->outputs) lane_outputs[id] = number;
      lane_axes_.push_back(p.price.axes);
      ++number;
    }
  }
  lane_done_.assign(static_cast<size_t>(number), 0);
  for (PricedRegion& priced : regions_)
    for (PricedOp& p : priced.ops) {
      if (p.on_lane) continue;
      for (ValueId id : p.op->inputs)
        if (auto at = lane_outputs.find(id); at != lane_outputs.end()) p.joins.push_back(at->second);
    }
  for (const Action& action : program_.schedule) {
    size_t found = regions_.size();
    for (size_t r = 0; r < regions_.size(); ++r)
      if (regions_[r].region->kind == action.region && regions_[r].region->chunk == action.chunk) found = r;
    region_of_action_.push_back(found);
  }
}

double RankWalk::noisy(double seconds) {
  if (options_.jitter <= 0) return seconds * options_.straggler;
  auto draw = static_cast<uint64_t>(trace_.size()) * 7919 + static_cast<uint64_t>(action_) * 104729 + op_;
  return seconds * options_.straggler * std::max(0.5, 1 + options_.jitter * random_.normal(draw));
}

void RankWalk::record(const PricedOp& op, double start, double end, const char* lane, int microbatch) {
  if (options_.trace == KeepTrace::no || end <= start) return;
  trace_.push_back({.path = op.op->path,
                    .name = std::string(op.op->def->name),
                    .start_s = start,
                    .end_s = end,
                    .lane = lane,
                    .flops = op.price.flops,
                    .bytes = static_cast<int64_t>(op.price.bytes),
                    .rank = program_.stage_rank,
                    .step = microbatch,
                    .phase = std::string(name_of(program_.schedule[action_].region)),
                    .axes = op.price.axes});
}

void RankWalk::wait_until(double at, double RankTime::*part) {
  if (at <= now_) return;
  time_.*part += at - now_;
  now_ = at;
}

void RankWalk::wait_for_axes(double at, const std::string& axes) {
  if (at <= now_) return;
  time_.exposed[axes] += at - now_;
  now_ = at;
}

// Beside a message, compute is slower for as long as both last.
void RankWalk::run_compute(const PricedOp& op) {
  double seconds = noisy(op.price.seconds), start = now_;
  double beside = std::clamp(lane_free_ - now_, 0.0, seconds / compute_speed_beside_messages_);
  seconds += beside * (1 - compute_speed_beside_messages_);
  now_ += seconds;
  (updating_ ? time_.update : time_.compute) += seconds;
  record(op, start, now_, "compute", program_.schedule[action_].microbatch);
}

void RankWalk::post_on_lane(const PricedOp& op, int microbatch) {
  double start = std::max(now_, lane_free_);
  lane_free_ = start + op.price.seconds;
  (op.price.level > 0 ? far_busy_ : near_busy_) = lane_free_;
  record(op, start, lane_free_, "comm", microbatch);
}

bool RankWalk::run_message(const PricedOp& op, int microbatch, StageMessages& mail) {
  const OpPrice& price = op.price;
  if (price.message == Message::Kind::send || price.message == Message::Kind::receive) {
    if (price.message == Message::Kind::send) {
      mail.post({program_.stage_rank, op.peer, microbatch, op.tag}, now_ + price.seconds, price.seconds);
      record(op, now_, now_ + price.seconds, "comm", microbatch);
      if (!profile_.overlap_pipeline) wait_for_axes(now_ + price.seconds, price.axes);
      return true;
    }
    auto letter = mail.find({op.peer, program_.stage_rank, microbatch, op.tag});
    if (!letter) return false;
    // What is left when the message is on its way is the transfer's fault; before that, the other stage's.
    wait_until(letter->arrives - letter->transfer, &RankTime::bubble);
    wait_for_axes(letter->arrives, price.axes);
    return true;
  }
  if (op.meets > 1) {
    if (auto all = mail.all_there(op.op->path, op.meets)) {
      wait_until(*all, &RankTime::bubble);
      wait_for_axes(now_ + price.seconds, price.axes);
      return true;
    }
    return false;
  }
  // A message of the compute lane shares its links with what the comm lane still sends over them.
  double start = now_, seconds = op.waited_s;
  double busy = (price.level > 0 ? far_busy_ : near_busy_) - now_;
  if (busy > 0) seconds += std::min(busy, seconds);
  wait_for_axes(now_ + seconds, price.axes);
  record(op, start, now_, "compute", microbatch);
  return true;
}

bool RankWalk::run_op(const PricedOp& op, int microbatch, StageMessages& mail) {
  for (int join : op.joins) wait_for_axes(lane_done_[static_cast<size_t>(join)], lane_axes_[static_cast<size_t>(join)]);
  if (profile_.host_s_per_kernel > 0) {
    host_ = std::max(host_, profile_.launches_wait ? now_ : 0.0) + profile_.host_s_per_kernel * op.price.kernels;
    wait_until(host_, &RankTime::host);
  }
  if (op.price.message) return run_message(op, microbatch, mail);
  run_compute(op);
  return true;
}

bool RankWalk::advance(StageMessages& mail) {
  bool moved = false;
  while (action_ < program_.schedule.size()) {
    const Action& action = program_.schedule[action_];
    const PricedRegion& region = regions_[region_of_action_[action_]];
    bool entering = op_ == 0;
    if (entering && action.region == RegionKind::update && !updating_) {
      updating_ = true;
      wait_for_axes(lane_free_, regions_.empty() ? std::string() : std::string("dp"));
    }
    for (; op_ < region.ops.size(); ++op_) {
      const PricedOp& op = region.ops[op_];
      if (op.last_only && action.microbatch != region.last_microbatch) continue;
      if (op.on_lane) {
        post_on_lane(op, action.microbatch);
        lane_done_[region.first_number + op_] = lane_free_;
        moved = true;
        continue;
      }
      if (op.meets > 1 && arrived_ != &op) {
        for (int join : op.joins)
          wait_for_axes(lane_done_[static_cast<size_t>(join)], lane_axes_[static_cast<size_t>(join)]);
        mail.arrive(op.op->path, now_);
        arrived_ = &op;
        moved = true;
      }
      if (!run_op(op, action.microbatch, mail)) return moved;
      arrived_ = nullptr;
      moved = true;
    }
    ++action_, op_ = 0;
    moved = true;
  }
  return moved;
}

void RankWalk::finish(double step_end) {
  wait_until(step_end, &RankTime::bubble);
}

}  // namespace sextant
