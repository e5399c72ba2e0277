// Compares a part of the weights and optimizer states of replicas every train.check_replicas_every steps.
#include "train/health/replica_check.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Replicas final : public Monitor {
 public:
  explicit Replicas(RankServices& rank) : rank_(rank) {}

  RunActions before(int64_t step) override {
    if ((step - 1) % rank_.run.train.check_replicas_every == 0) rank_.replicas.check_part(rank_.group);
    return {};
  }

 private:
  RankServices& rank_;
};

}  // namespace

std::unique_ptr<Monitor> make_replicas_monitor(RankServices& rank) {
  return rank.run.train.check_replicas_every > 0 ? std::make_unique<Replicas>(rank) : nullptr;
}

}  // namespace sextant
