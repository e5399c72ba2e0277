#include "replay/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/bisect.h"

namespace sextant {

namespace {

double relative_difference(double a, double b) {
  if ((std::isnan(a) && std::isnan(b)) || a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::fabs(a - b) / std::max(std::fabs(a), std::fabs(b));
}

double difference_of(double loss, double grad_norm, const StepMetrics& metrics) {
  return std::max(relative_difference(loss, metrics[number::loss]),
                  relative_difference(grad_norm, metrics[number::grad_norm]));
}

bool agree(const Execution& a, const Execution& b) {
  return difference_of(a.metrics[number::loss], a.metrics[number::grad_norm], b.metrics) == 0 &&
         !first_different(a.ops, b.ops);
}

}  // namespace

std::string_view name_of(ReplayVerdict verdict) {
  switch (verdict) {
    case ReplayVerdict::reproducible:
      return "reproducible";
    case ReplayVerdict::transient:
      return "transient";
    case ReplayVerdict::persistent:
      return "persistent";
    case ReplayVerdict::unrecorded:
      return "unrecorded";
  }
  return "";
}

Judgement judge(const std::optional<RecordedStep>& recorded, const std::vector<Execution>& executions,
                double rounding) {
  Judgement judgement;
  if (recorded)
    for (const Execution& execution : executions)
      judgement.difference =
          std::max(judgement.difference, difference_of(recorded->loss, recorded->grad_norm, execution.metrics));
  judgement.bit_equal = recorded && judgement.difference == 0;
  bool together = std::ranges::all_of(executions, [&](const Execution& e) { return agree(executions.front(), e); });
  if (!together) {
    judgement.verdict = ReplayVerdict::persistent;
    judgement.text =
        "executions here differ from one another: this machine is at fault, or a kernel is not deterministic";
  } else if (!recorded) {
    judgement.text = "the run has no record of this step to compare with";
  } else if (judgement.difference <= rounding) {
    judgement.verdict = ReplayVerdict::reproducible;
    judgement.text = judgement.bit_equal
                         ? "every execution gives the record, bit for bit: it follows from weights and data"
                         : fmt::format(
                               "every execution gives the record but for rounding (relative "
                               "difference {:.1e}): it follows from weights and data",
                               judgement.difference);
  } else {
    judgement.verdict = ReplayVerdict::transient;
    judgement.text =
        "executions here agree with each other and not with the record: what the run recorded does not "
        "follow from weights and data. Suspect the devices that ran it";
  }
  return judgement;
}

}  // namespace sextant
