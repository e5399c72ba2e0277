#include "exec/sim/rank_walk.h"

#include <algorithm>
#include <set>
#include <utility>

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
  StageBarrier& barrier = barriers_[name];
  ++barrier.present;
  barrier.last = std::max(barrier.last, at);
}

std::optional<double> StageMessages::all_there(const std::string& name, size_t of) const {
  auto found = barriers_.find(name);
  if (found == barriers_.end() || found->second.present < of) return std::nullopt;
  return found->second.last;
}

namespace {

constexpr double kAloneStart = 1e4;  // seconds
constexpr const char *kComputeLane = "compute", *kCommLane = "comm";

// How many pipeline ranks take part in a sum: those of its stages, or all where it goes along the pipeline too.
size_t participants(const Program& program, const Op& op) {
  std::optional<Message> message = local_message(program, op);
  if (!message) return 0;
  if (!message->stages.empty()) return message->stages.size();
  auto axis = program.mesh.find(AxisRole::pipeline);
  bool along = axis && std::ranges::count(message->axes, program.mesh.def(*axis).name) > 0;
  return along ? static_cast<size_t>(program.mesh.size(*axis)) : 0;
}

PricedOp price_op(const Program& program, const Op& op, Pricer& pricer) {
  PricedOp priced{.op = &op, .price = pricer.price(program, op)};
  // A profile that does not overlap these waits for each.
  bool gradient = op.phase == Phase::weight_gradient || priced.price.message == Collective::reduce_scatter ||
                  priced.price.message == Collective::all_reduce;
  bool message = priced.price.message == Collective::send || priced.price.message == Collective::receive;
  if (message) priced.peer = static_cast<int>(op.attrs.integer("peer")), priced.tag = op.attrs.integer("tag");
  const SoftwareProfile& profile = pricer.profile();
  bool waits = (profile.zero_waits && priced.price.message == Collective::reduce_scatter) ||
               (profile.zero_broadcasts && priced.price.message == Collective::all_gather);
  priced.on_lane = on_comm_lane(op) && !waits && (gradient ? profile.overlap_gradients : profile.overlap_gathers);
  return priced;
}

// Whether `op` could have begun with the one before it.
bool independent(const PricedOp& before, const PricedOp& op) {
  return std::ranges::none_of(op.op->inputs,
                              [&](ValueId id) { return std::ranges::count(before.op->outputs, id) > 0; });
}

// A sum of gradients over replicas at the end of a step's backwards.
bool reduces_gradients_once(const PricedOp& op) {
  return last_microbatch_only(*op.op) && on_comm_lane(*op.op) &&
         (op.price.message == Collective::reduce_scatter || op.price.message == Collective::all_reduce);
}

// Of compute, while this message is under way.
double speed_beside(const OpPrice& message, const Efficiencies& efficiency) {
  return message.level > 0 ? efficiency.far_overlap : efficiency.near_overlap;
}

// A collective of tensor parallelism stands between GEMMs on the compute lane, and its profile may hide a part of
// it: of each that it cuts up beside the GEMMs, and all that takes no longer than the GEMM before it, where it
// does not wait for that one.
double waited_seconds(const Program& program, const PricedOp& op, const PricedOp* before, const Pricer& pricer,
                      double compute_per_message) {
  // The rest is the first piece, which nothing hides, and what GEMMs lose in pieces. By torchtitan's two ratios
  // (tests/validate/effects).
  constexpr double kLeftWhenCutUp = 0.6;
  const double seconds = op.price.seconds, speed = speed_beside(op.price, pricer.efficiency());
  // Beside another microbatch: 93 % of the messages of experts are hidden so (Megatron Core, arXiv 2603.07685), and
  // compute is slower meanwhile; of what lasts longer than the compute, so much as there is of that.
  constexpr double kExpertsHidden = 0.93;
  if (op.price.to_experts)
    return pricer.profile().overlap_experts ? seconds * (1 - std::min(kExpertsHidden * speed, compute_per_message))
                                            : seconds;
  std::optional<Message> message = local_message(program, *op.op);
  if (!message || message->between_stages() || !all_have_role(program.mesh, message->axes, AxisRole::tensor))
    return seconds;
  double waited = pricer.profile().overlap_tensor ? seconds * kLeftWhenCutUp : seconds;
  if (pricer.profile().overlap_tensor_backward && before && !before->price.message && independent(*before, op))
    waited = std::min(waited, seconds - std::min(seconds * speed, before->price.seconds));
  return waited;
}

// Seconds that a region computes for each second that its messages to experts take. Forward of one microbatch and
// backward of another hide each other's messages, of which both have as many.
double compute_per_expert_message(const std::vector<PricedOp>& ops) {
  double compute = 0, messages = 0;
  for (const PricedOp& op : ops) {
    if (op.price.to_experts) messages += op.price.seconds;
    if (!op.price.message && !once_per_step(*op.op)) compute += op.price.seconds;
  }
  return messages > 0 ? compute / messages : 0;
}

}  // namespace

std::vector<PricedOp> price_region(const Program& program, const Region& region, Pricer& pricer) {
  std::vector<PricedOp> ops;
  ops.reserve(region.ops.size());
  for (const Op& op : region.ops) ops.push_back(price_op(program, op, pricer));
  const double beside_experts = compute_per_expert_message(ops);
  const PricedOp* before = nullptr;  // on the compute lane, in every microbatch
  for (PricedOp& priced : ops) {
    if (priced.on_lane) continue;
    if (priced.price.message) priced.waited_s = waited_seconds(program, priced, before, pricer, beside_experts);
    if (!once_per_step(*priced.op)) before = &priced;
  }
  return ops;
}

RankWalk::RankWalk(const Program& program, Pricer& pricer, const SimOptions& options)
    : program_(program),
      options_(options),
      profile_(pricer.profile()),
      efficiency_(pricer.efficiency()),
      walk_(program),
      random_(options.seed, "simulated jitter", static_cast<uint64_t>(program.stage_rank)) {
  price_all(pricer);
}

void RankWalk::price_all(Pricer& pricer) {
  for (const Region& region : program_.regions)
    for (PricedOp& priced : price_region(program_, region, pricer)) ops_.push_back(std::move(priced));
  for (PricedOp& p : ops_)
    if (p.price.message && p.peer < 0) p.meets = participants(program_, *p.op);
  // Software that does not reduce gradients beside backward reduces them when all of it is done: one that stopped for
  // them after the last backward of each chunk would hold up the stages before it.
  for (PricedOp& p : ops_) p.held_back = !p.on_lane && p.meets <= 1 && reduces_gradients_once(p);
  lane_done_.assign(ops_.size(), 0);
}

double RankWalk::noisy(double seconds) {
  if (options_.jitter <= 0) return seconds * options_.straggler;
  auto draw = static_cast<uint64_t>(trace_.size()) * 7919 + static_cast<uint64_t>(action_) * 104729 + step_;
  return seconds * options_.straggler * std::max(0.5, 1 + options_.jitter * random_.normal(draw));
}

void RankWalk::record(const PricedOp& op, double start, double end, const char* lane, int microbatch) {
  if (options_.trace == KeepTrace::no || end <= start) return;
  if (options_.trace == KeepTrace::passes)
    return add_to_pass(lane == kComputeLane ? computing_ : sending_, op, start, end, lane, microbatch);
  trace_.push_back({.path = op.op->path,
                    .name = std::string(op.op->def->name),
                    .start_s = start,
                    .end_s = end,
                    .lane = lane,
                    .flops = op.price.flops,
                    .bytes = static_cast<int64_t>(op.price.bytes),
                    .rank = program_.stage_rank,
                    .step = microbatch,
                    .phase = std::string(name_of(current_->region)),
                    .axes = op.price.axes});
}

void RankWalk::add_to_pass(Pass& pass, const PricedOp& op, double start, double end, const char* lane, int microbatch) {
  Action action{.region = current_->region, .chunk = current_->chunk, .microbatch = microbatch};
  // A pause as long as what came before it is seen.
  if (pass.parts.empty() || !same_work(pass.action, action) || start - pass.end > pass.busy) {
    close_pass(pass);
    pass = {.action = action, .start = start, .end = end, .busy = 0, .parts = {}};
  }
  auto part = std::ranges::find(pass.parts, op.price.axes, &Event::axes);
  if (part == pass.parts.end())
    part = pass.parts.insert(part, {.path = {},
                                    .name = {},
                                    .lane = lane,
                                    .rank = program_.stage_rank,
                                    .step = microbatch,
                                    .phase = std::string(name_of(action.region)),
                                    .axes = op.price.axes});
  part->end_s += end - start;
  part->flops += op.price.flops, part->bytes += static_cast<int64_t>(op.price.bytes);
  pass.end = std::max(pass.end, end), pass.busy += end - start;
}

void RankWalk::close_pass(Pass& pass) {
  double at = pass.start;
  for (Event& part : pass.parts) {
    part.start_s += at, part.end_s += at;
    at = part.end_s;
    trace_.push_back(std::move(part));
  }
  pass.parts.clear();
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
double RankWalk::beside_messages(double seconds) {
  double at = now_, left = seconds;
  for (; first_on_lane_ < on_lane_.size() && left > 0; ++first_on_lane_) {
    const LaneMessage& message = on_lane_[first_on_lane_];
    if (message.end <= at) continue;
    if (message.start > at) {  // nothing travels until then
      double alone = std::min(left, message.start - at);
      at += alone, left -= alone;
    }
    double beside = std::min(message.end - at, left / message.compute_speed);
    at += beside, left -= beside * message.compute_speed;
    if (at < message.end) break;
  }
  return at + std::max(0.0, left) - now_;
}

void RankWalk::run_compute(const PricedOp& op) {
  double start = now_, seconds = beside_messages(noisy(op.price.seconds));
  now_ += seconds;
  (updating_ ? time_.update : time_.compute) += seconds;
  record(op, start, now_, kComputeLane, current_->microbatch);
}

void RankWalk::post_on_lane(const PricedOp& op, int microbatch) {
  double start = std::max(now_, lane_free_);
  lane_free_ = start + op.price.seconds;
  // Copy engines take nothing of the device's kernels and of its links to others; in the update a copy takes memory of
  // the host from the step that runs there.
  const bool copies = op.op->def->between_spaces;
  if (!copies) (op.price.level > 0 ? far_busy_ : near_busy_) = lane_free_;
  const bool beside_kernels = copies && op.op->phase != Phase::update;
  if (first_on_lane_ == on_lane_.size()) on_lane_.clear(), first_on_lane_ = 0;
  on_lane_.push_back(
      {.start = start, .end = lane_free_, .compute_speed = beside_kernels ? 1.0 : speed_beside(op.price, efficiency_)});
  record(op, start, lane_free_, kCommLane, microbatch);
}

// Links that the comm lane sends over are shared: both go at half their rate for as long as both last.
double RankWalk::beside_lane(const OpPrice& message, double seconds) const {
  double busy = (message.level > 0 ? far_busy_ : near_busy_) - now_;
  return seconds + std::clamp(busy, 0.0, seconds);
}

bool RankWalk::run_message(const PricedOp& op, int microbatch, StageMessages& messages) {
  const OpPrice& price = op.price;
  if (price.message == Collective::send || price.message == Collective::receive) {
    if (price.message == Collective::send) {
      double seconds = beside_lane(price, price.seconds);
      messages.post({program_.stage_rank, op.peer, microbatch, op.tag}, now_ + seconds, seconds);
      record(op, now_, now_ + seconds, kCommLane, microbatch);
      if (!profile_.overlap_pipeline) wait_for_axes(now_ + seconds, price.axes);
      return true;
    }
    auto message = messages.find({op.peer, program_.stage_rank, microbatch, op.tag});
    if (!message) return false;
    // Waiting until the message is in flight is bubble, caused by the other stage; the rest is the transfer.
    wait_until(message->arrives - message->transfer, &RankTime::bubble);
    wait_for_axes(message->arrives, price.axes);
    return true;
  }
  if (op.meets > 1) {
    if (auto all = messages.all_there(op.op->path, op.meets)) {
      wait_until(*all, &RankTime::bubble);
      wait_for_axes(now_ + price.seconds, price.axes);
      return true;
    }
    return false;
  }
  double start = now_;
  wait_for_axes(now_ + beside_lane(price, op.waited_s), price.axes);
  record(op, start, now_, kComputeLane, microbatch);
  return true;
}

bool RankWalk::run_op(const PricedOp& op, int microbatch, StageMessages& messages) {
  if (profile_.host_s_per_kernel > 0) {
    bool waits = profile_.launches_wait || op.price.host_waits;
    host_ = std::max(host_, waits ? now_ : 0.0) + profile_.host_s_per_kernel * op.price.kernels + op.price.host_s;
    wait_until(host_, &RankTime::host);
  }
  if (op.price.message) return run_message(op, microbatch, messages);
  run_compute(op);
  return true;
}

// False where it must wait for another rank, and be taken again.
bool RankWalk::take(const WalkStep& step, const Action& action, StageMessages& messages) {
  // A send leaves its operand at once here: nothing waits for it.
  if (step.kind == WalkStep::Kind::settle || step.kind == WalkStep::Kind::reclaim) return true;
  auto number = static_cast<size_t>(step.op);
  const PricedOp& op = ops_[number];
  if (step.kind == WalkStep::Kind::wait) {
    wait_for_axes(lane_done_[number], op.price.axes);
    return true;
  }
  if (op.on_lane) {
    post_on_lane(op, action.microbatch);
    lane_done_[number] = lane_free_;
    return true;
  }
  if (op.held_back) {
    held_back_.push_back(number);
    return true;
  }
  if (op.meets > 1 && arrived_ != &op) {
    messages.arrive(op.op->path, now_);
    arrived_ = &op;
  }
  if (!run_op(op, action.microbatch, messages)) return false;
  arrived_ = nullptr;
  return true;
}

void RankWalk::run_held_back(StageMessages& messages) {
  if (held_back_.empty()) return;
  current_ = &program_.schedule[action_];
  for (size_t number : std::exchange(held_back_, {})) run_op(ops_[number], current_->microbatch, messages);
}

bool RankWalk::advance(StageMessages& messages) {
  bool moved = false;
  for (std::span<const Action> unit; action_ < program_.schedule.size(); action_ += unit.size(), step_ = 0) {
    unit = leading_unit(std::span(program_.schedule).subspan(action_));
    updating_ = updating_ || unit.front().region == RegionKind::update;
    if (updating_) run_held_back(messages);
    std::span<const WalkStep> steps = walk_.steps(unit);
    for (; step_ < steps.size(); ++step_) {
      const PricedOp* waiting = arrived_;
      current_ = &unit[static_cast<size_t>(steps[step_].part)];
      if (!take(steps[step_], *current_, messages)) return moved || arrived_ != waiting;
      if (recorded_) recorded_->push_back(steps[step_]);
      moved = true;
    }
    moved = true;
  }
  return moved;
}

void RankWalk::forget() {
  // So much later than anything that the host has to do that it is never waited for, but where it waits itself.
  now_ = lane_free_ = near_busy_ = far_busy_ = kAloneStart;
  host_ = 0;
  on_lane_.clear(), first_on_lane_ = 0;
  held_back_.clear();
  lane_done_.assign(ops_.size(), 0);
}

UnitAlone RankWalk::alone(std::span<const Action> unit) {
  forget();
  double before = 0;  // of the blocks that have ended
  auto passed = [&] { return before + now_ - kAloneStart; };
  std::set<std::pair<int32_t, int>> begun;  // blocks, of each part
  UnitAlone out;
  StageMessages messages;
  for (const WalkStep& step : walk_.steps(unit)) {
    current_ = &unit[static_cast<size_t>(step.part)];
    const PricedOp* op = step.kind == WalkStep::Kind::start ? &ops_[static_cast<size_t>(step.op)] : nullptr;
    if (op && op->meets > 1) continue;
    bool begins = op && !op->on_lane && op->op->block >= 0 && begun.emplace(step.part, op->op->block).second;
    if (begins && !is_pair(unit)) {
      before = passed();
      forget();
    }
    bool between_stages = op && op->peer >= 0;
    if (between_stages)
      out.messages.push_back({.kind = *op->price.message,
                              .part = step.part,
                              .at = passed(),
                              .lane_busy = std::max(0.0, lane_free_ - now_)});
    StageMessages::Key received{between_stages ? op->peer : -1, program_.stage_rank, current_->microbatch,
                                between_stages ? op->tag : 0},
        sent = received;
    std::swap(sent.from, sent.to);
    if (between_stages && op->price.message == Collective::receive) messages.post(received, 0, 0);
    take(step, *current_, messages);
    if (between_stages && op->price.message == Collective::send)
      out.messages.back().arrives = before + messages.find(sent)->arrives - kAloneStart;
  }
  out.seconds = passed();
  return out;
}

void RankWalk::finish(double step_end) {
  wait_until(step_end, &RankTime::bubble);
  close_pass(computing_), close_pass(sending_);
}

}  // namespace sextant
