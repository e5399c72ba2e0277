// Names the rank for which the others wait, from the times of all ranks every kStragglerWindow steps.
#include "train/health/straggler.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Stragglers final : public Monitor {
 public:
  explicit Stragglers(RankServices& rank)
      : rank_(rank), program_(stage_rank_of(rank.trainer.bound().program().mesh, rank.group.rank())) {}

  RunActions before(int64_t step) override {
    const int64_t done = step - 1;
    if (done % kStragglerWindow != 0) return {};
    std::optional<Straggler> slow = watch_.look(rank_.trainer.clock().take_means(), program_, rank_.group);
    if (!slow || rank_.slow_rank.is_named(slow->rank, done)) return {};
    rank_.slow_rank = {slow->rank, done};
    return {SayLine{fmt::format("step {}: {}", done, slow->text)},
            RunEvent{.kind = EventKind::straggler,
                     .step = done,
                     .text = slow->text,
                     .details = {{"rank", slow->rank},
                                 {"reason", std::string(name_of(slow->reason))},
                                 {"own_seconds", slow->own},
                                 {"peer_seconds", slow->others}}}};
  }

 private:
  RankServices& rank_;
  int program_;
  StragglerWatch watch_;
};

}  // namespace

std::unique_ptr<Monitor> make_stragglers_monitor(RankServices& rank) {
  return rank.group.size() > 1 ? std::make_unique<Stragglers>(rank) : nullptr;
}

}  // namespace sextant
