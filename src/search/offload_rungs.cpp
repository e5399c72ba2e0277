#include "search/offload_rungs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/check.h"
#include "search/search_price.h"

namespace sextant {

namespace {

struct Step {
  bool on_nvme, working_weights;
  std::string_view about;
};
constexpr std::array<Step, 4> kSteps{{
    {false, false, "nothing fits: once more with optimizer state, activations or both on the host"},
    {false, true, "nothing fits: once more with the weights of blocks on the host too"},
    {true, false, "the host has no room for optimizer state: once more with it on NVMe"},
    {true, true, "nothing fits: once more with optimizer state on NVMe and the weights of blocks on the host"},
}};

class Rungs {
 public:
  explicit Rungs(const SearchRequest& request) : request_(request), run_(request.run), seen_{run_.offload} {
    Target target = target_of(run_, {request.spec, request.machine, request.profile, request.target});
    has_low_bits_ = run_.train.precision != Precision::f32 && target.computes_in.front() == DType::bf16;
  }

  std::vector<OffloadRung> all() {
    std::vector<OffloadRung> rungs;
    for (const Step& step : kSteps) {
      if (step.on_nvme && request_.machine.host.nvme_bytes_per_s <= 0) continue;
      OffloadRung rung{.about = std::string(step.about), .runs = {}, .on_nvme = step.on_nvme};
      for (bool optimizer : {true, false})
        for (bool activations : {false, true}) add(step, optimizer, activations, rung.runs);
      if (!rung.runs.empty()) rungs.push_back(std::move(rung));
    }
    return rungs;
  }

 private:
  template <class Value>
  void set(Value OffloadSection::*key, std::string_view name, const Value& value, OffloadSection& offload) const {
    const bool asked = run_.given(name) || run_.offload.*key != OffloadSection{}.*key;
    if (!asked) offload.*key = value;
  }

  void add(const Step& step, bool optimizer, bool activations, std::vector<RunConfig>& runs) {
    using Section = OffloadSection;
    RunConfig run = run_;
    Section& offload = run.offload;
    set(&Section::optimizer, "offload.optimizer", optimizer, offload);
    set(&Section::weights, "offload.weights", offload.optimizer && has_low_bits_, offload);
    set(&Section::working_weights, "offload.working_weights", step.working_weights, offload);
    set(&Section::activations, "offload.activations",
        activations ? OffloadedActivations::block : OffloadedActivations::none, offload);
    set(&Section::to, "offload.to", step.on_nvme ? OffloadTarget::nvme : OffloadTarget::host, offload);
    if (offload.to == OffloadTarget::nvme) set(&Section::path, "offload.path", std::string(kPathToName), offload);
    if (std::ranges::count(seen_, offload) > 0 || !check(run).empty()) return;
    seen_.push_back(offload);
    runs.push_back(std::move(run));
  }

  const SearchRequest& request_;
  const RunConfig& run_;
  bool has_low_bits_ = false;
  std::vector<OffloadSection> seen_;
};

}  // namespace

std::vector<OffloadRung> offload_rungs(const SearchRequest& request) {
  const bool known = request.machine.host.has_link() && request.machine.device.kind != DeviceKind::cpu;
  if (!known || request.profile.kernels != Kernels::ours) return {};
  return Rungs(request).all();
}

}  // namespace sextant
