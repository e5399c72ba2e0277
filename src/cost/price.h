// price: what an op of a Program costs on a machine under a profile. Everything is read off the op's own Cost and
// Message; an op that says nothing about its kernel is a streaming one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cost/collective.h"
#include "cost/machine.h"
#include "cost/rank_placement.h"
#include "cost/routed_rows.h"
#include "cost/software_profile.h"
#include "ir/program.h"

namespace sextant {

struct OpPrice {
  double seconds = 0;       // of the device, or of the links where it is a message
  double kernels = 0;       // launched for it
  double flops = 0;         // executed
  double bytes = 0;         // that cross memory, or travel where it is a message
  double host_s = 0;        // of the host, beside what it takes to launch them
  bool host_waits = false;  // the host has waited for the device before it issues this
  std::optional<Collective> message = {};
  std::string axes = {};    // of the message's group; the pipeline's between stages
  int level = -1;           // of the machine, that the message crosses
  bool to_experts = false;  // the message brings tokens to the ranks of their experts, or back
};

// Name of the link between a device and its host, used where messages have the axes of their group.
inline constexpr std::string_view kHostLink = "host link";
// The same of the way between a host and its disks.
inline constexpr std::string_view kNvme = "nvme";

// Label of the time that a step waits on the link or axes in `axes`: "messages not hidden, along dp".
std::string not_hidden_text(std::string_view axes);

// For the Programs of one run, of each of which it remembers what it has found; of one rank of a Program's class: the
// others are like it.
class Pricer {
 public:
  // `expert_imbalance`: how many times the mean the busiest rank gets of the tokens that are sent to experts.
  Pricer(const Machine& machine, const Efficiencies& efficiency, const SoftwareProfile& profile,
         double expert_imbalance = 1, RankPlacement placement = {});

  OpPrice price(const Program& program, const Op& op);

  const Machine& machine() const { return machine_; }
  const Efficiencies& efficiency() const { return efficiency_; }
  const SoftwareProfile& profile() const { return profile_; }

 private:
  OpPrice price_message(const Program& program, const Op& op, const Message& message);
  OpPrice price_measured_message(const Program& program, const Message& message);
  std::optional<OpPrice> price_tokens_sent(const Program& program, const Op& op, const Message& message);
  OpPrice price_space_copy(const Program& program, const Op& op) const;
  OpPrice price_file_copy(const Program& program, const Op& op) const;
  OpPrice price_on_host(const Program& program, const Op& op) const;
  OpPrice price_compute(const Program& program, const Op& op);
  double gemm_of_experts(Gemm gemm, const Op& op, double width, const std::string& dtype, OpPrice& out) const;
  double streamed_bytes(const Program& program, const Op& op, double bytes);
  std::optional<OpPrice> price_measured(const Program& program, const Op& op);
  GroupPlace place_ranks(const Program& program, const std::vector<int>& ranks) const;
  const GroupPlace& group(const Program& program, const std::vector<std::string>& axes);
  // Bytes of a rank's copy of the model, and the number of tensors in which other software keeps it.
  struct Weights {
    double bytes = 0, tensors = 0;
  };
  Weights weights_of(const Program& program);
  const RoutedRows& routed(const Program& program);

  const Machine& machine_;
  const Efficiencies& efficiency_;
  const SoftwareProfile profile_;
  const double expert_imbalance_;
  const RankPlacement placement_;
  std::map<std::pair<std::vector<std::string>, int>, GroupPlace> groups_;  // by axes and pipeline rank
  std::map<int, Weights> weights_;                                         // by pipeline rank
  std::map<int, RoutedRows> routed_;                                       // by pipeline rank
};

}  // namespace sextant
