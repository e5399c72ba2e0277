#include "train/health/microbatch_check.h"

#include <algorithm>
#include <optional>

#include "base/corruption.h"
#include "comm/tags.h"

namespace sextant {

namespace {

std::vector<int> sample_axes(const Mesh& mesh) {
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (mesh.role(axis) == AxisRole::data && mesh.size(axis) > 1) axes.push_back(axis);
  return axes;
}

}  // namespace

void require_microbatch_check(const RunConfig& run, const Mesh& mesh, const Target& target) {
  if (run.train.check_microbatch_every == 0) return;
  auto refuse = [&](const std::string& got, const std::string& expected) {
    throw UserError({.place = run.place_of("train.check_microbatch_every"), .got = got, .expected = expected});
  };
  if (!target.checks_between_ranks)
    refuse(fmt::format("ops of this device ({}) cannot be watched one by one", target.name), "0, or device = \"cpu\"");
  if (mesh.ranks(AxisRole::data) == 1) refuse("no other rank trains the same weights", "0, or mesh.dp of at least 2");
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (mesh.size(axis) == 1) continue;
    if (mesh.def(axis).experts == ExpertRole::expert)
      refuse("experts work on the tokens of several ranks at once", "0, or mesh.ep = 1");
    if (mesh.def(axis).pipeline_copies)
      refuse("both copies of the pipeline work on one microbatch", "0, or a schedule with one copy");
  }
  if (run.train.precision != Precision::automatic && run.train.precision != Precision::f32)
    refuse(fmt::format("train.precision is {}", word_of(run.train.precision)), "0, or train.precision = \"f32\"");
}

MicrobatchCheck::MicrobatchCheck(Trainer& trainer, Transport* transport, HostGroup& all)
    : trainer_(trainer), transport_(transport), all_(all) {
  if (!transport) return;
  const Mesh& mesh = trainer.bound().program().mesh;
  std::vector<int> axes = sample_axes(mesh);
  if (axes.empty()) return;
  peers_ = group_of_ranks(group_of(mesh, transport->rank(), axes), transport->rank());
  rows_.resize(peers_.ranks.size());
  int64_t own = trainer.first_row();
  Channel channel{.transport = *transport, .tag = kHostTag};
  all_gather(channel, peers_, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(rows_)));
}

MicrobatchCheck::Gathered MicrobatchCheck::hashes(int64_t step, int64_t first_sample, int shift,
                                                  const StepDrill& drill) {
  auto self = static_cast<size_t>(peers_.self), owner = (self + static_cast<size_t>(shift)) % rows_.size();
  std::vector<uint64_t> own = trainer_.hash_microbatch(step, first_sample + rows_[owner] - rows_[self], drill);
  std::vector<uint64_t> gathered(own.size() * rows_.size());
  Channel channel{.transport = *transport_, .tag = kHostTag};
  all_gather(channel, peers_, std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(gathered)));
  Gathered by_member;
  for (size_t i = 0; i < rows_.size(); ++i) {
    auto from = gathered.begin() + static_cast<std::ptrdiff_t>(i * own.size());
    by_member.emplace_back(from, from + static_cast<std::ptrdiff_t>(own.size()));
  }
  return by_member;
}

void MicrobatchCheck::check(int64_t step, int64_t first_sample, const StepDrill& drill) {
  if (rows_.empty()) return;
  size_t members = rows_.size();
  Gathered own = hashes(step, first_sample, 0, drill), of_next = hashes(step, first_sample, 1);
  std::optional<size_t> owner;
  for (size_t i = 0; i < members && !owner; ++i)
    if (own[i] != of_next[(i + members - 1) % members]) owner = i;
  // Pipeline and tensor-parallel ranks beside this one take part in what follows, whatever they saw.
  std::vector<int64_t> differing{owner ? 1 : 0};
  all_.sum(differing);
  if (differing[0] == 0) return;
  bool repeated = members == 2;
  Gathered own_again = repeated ? hashes(step, first_sample, 0) : Gathered();
  Gathered third = hashes(step, first_sample, repeated ? 1 : 2);
  if (!owner) {
    all_.barrier();  // until the ranks that saw it have ended the run
    return;
  }
  size_t other = (*owner + members - 1) % members;
  size_t gradient = static_cast<size_t>(std::ranges::mismatch(own[*owner], of_next[other]).in1 - own[*owner].begin());
  bool owner_wrong, other_wrong;
  if (repeated) {
    owner_wrong = own_again[*owner] != own[*owner];
    other_wrong = third[other] != of_next[other];
  } else {
    const std::vector<uint64_t>& decides = third[(*owner + members - 2) % members];
    owner_wrong = decides == of_next[other];
    other_wrong = decides == own[*owner];
  }
  int wrong = owner_wrong == other_wrong ? -1 : peers_.ranks[owner_wrong ? *owner : other];
  report(step, *owner, other, gradient, wrong);
}

void MicrobatchCheck::report(int64_t step, size_t owner, size_t other, size_t gradient, int wrong) {
  // One rank says it for the group; the others wait until it has.
  if (peers_.self > 0) {
    std::byte never{};
    transport_->wait(transport_->receive(peers_.ranks[0], kHostTag, std::span(&never, 1)));
  }
  std::string tensor = trainer_.hashed_paths()[gradient];
  std::string who = wrong < 0           ? "nothing decides which of them is wrong"
                    : rows_.size() == 2 ? fmt::format("asked again, rank {} gives another answer: it is wrong", wrong)
                                        : fmt::format("a third rank agrees with the other: rank {} is wrong", wrong);
  throw Corruption(
      {.check = "microbatch",
       .rank = wrong < 0 ? std::nullopt : std::optional(wrong),
       .op = tensor,
       .verdict = wrong < 0           ? ""
                  : rows_.size() == 2 ? "transient"
                                      : ""},
      "",
      fmt::format("the first microbatch of rank {} in step {}, computed by ranks {} and {}, has different bits "
                  "in {}; {}",
                  peers_.ranks[owner], step, peers_.ranks[owner], peers_.ranks[other], tensor, who));
}

}  // namespace sextant
