#include "answers/fewest_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "laws/quantity.h"
#include "models/model_flops.h"
#include "plan/predict.h"

namespace sextant {

namespace {

constexpr double kSecondsOfDay = 86400;

std::string_view word_of(DeadlineOutcome outcome) {
  switch (outcome) {
    case DeadlineOutcome::met:
      return "met";
    case DeadlineOutcome::too_slow:
      return "too slow";
    case DeadlineOutcome::does_not_fit:
      return "does not fit";
    case DeadlineOutcome::no_layout:
      return "no layout";
  }
  return "";
}

double fastest_units(const Machine& machine) {
  double most = 0;
  for (const auto& [dtype, flops] : machine.device.peaks) most = std::max(most, flops);
  return most;
}

// No layout needs fewer than this: its model's operations at the peak of the device's fastest units.
int64_t least_devices(const DeadlineQuestion& q) {
  double peak = fastest_units(q.place.machine);
  if (peak <= 0) return 1;
  double flops = q.tokens * model_flops_per_token(q.asked.spec, q.asked.run.batch.seq).causal;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(flops / (peak * q.days * kSecondsOfDay))));
}

// Of a power of two, or three times one.
bool is_round(int64_t n) {
  while (n % 2 == 0) n /= 2;
  return n == 1 || n == 3;
}

class DeadlineSearch {
 public:
  explicit DeadlineSearch(const DeadlineQuestion& question)
      : q_(question), counts_(device_counts(question.place.machine.devices_per_node, question.most_devices)) {}

  FewestDevices run() {
    int64_t least = least_devices(q_);
    auto first = static_cast<size_t>(std::ranges::lower_bound(counts_, least) - counts_.begin());
    std::optional<size_t> met;
    size_t failed = first;  // all before it fail
    int64_t node = q_.place.machine.devices_per_node;
    for (size_t i = first; i < counts_.size() && !met; ++i) {
      bool last = i + 1 == counts_.size();
      if (counts_[i] > node && !is_round(counts_[i] / node) && !last) continue;
      if (meets(i))
        met = i;
      else
        failed = i + 1;
    }
    if (!met) refuse(least);
    while (failed < *met) {
      size_t middle = failed + (*met - failed) / 2;
      if (meets(middle))
        met = middle;
      else
        failed = middle + 1;
    }
    FewestDevices answer{.tokens = q_.tokens,
                         .days = q_.days,
                         .plan = std::move(*plans_.at(*met)),
                         .tried = {},
                         .next_less = {},
                         .least = least};
    for (const auto& [index, tried] : tried_) answer.tried.push_back(tried);
    if (*met > 0) {
      auto before = tried_.find(*met - 1);
      answer.next_less =
          before != tried_.end()
              ? before->second
              : TriedCount{.devices = counts_[*met - 1], .outcome = DeadlineOutcome::too_slow, .days = {}};
    }
    return answer;
  }

 private:
  bool meets(size_t index) {
    TriedCount tried{.devices = counts_[index], .outcome = DeadlineOutcome::too_slow, .days = {}};
    // Without failures and checkpoints, so no layout that is slower can do.
    double below = q_.days * kSecondsOfDay * q_.asked.tokens_per_step() / q_.tokens;
    try {
      std::optional<PlannedRun> plan = planned_run({.asked = q_.asked,
                                                    .place = q_.place,
                                                    .devices = tried.devices,
                                                    .tokens = q_.tokens,
                                                    .below_seconds = below});
      if (plan) tried.days = plan->layout.economics->days_with_failures;
      if (tried.days && *tried.days <= q_.days) tried.outcome = DeadlineOutcome::met;
      plans_[index] = std::move(plan);
    } catch (const DoesNotFit& error) {
      tried.outcome = DeadlineOutcome::does_not_fit, refusal_ = error.what();
    } catch (const UserError& error) {
      tried.outcome = DeadlineOutcome::no_layout, refusal_ = error.what();
    }
    q_.place.say(fmt::format("{} devices: {}{}", tried.devices, word_of(tried.outcome),
                             tried.days ? fmt::format(", {} days", with_digits(*tried.days, 3)) : std::string()));
    tried_[index] = tried;
    return tried.outcome == DeadlineOutcome::met;
  }

  [[noreturn]] void refuse(int64_t least) const {
    std::string got = fmt::format("{} tokens in {:g} days need more than {} devices", human_quantity(q_.tokens),
                                  q_.days, q_.most_devices);
    bool all_refused = !tried_.empty() && std::ranges::none_of(tried_, [](const auto& one) {
      return one.second.outcome == DeadlineOutcome::too_slow;
    });
    if (tried_.empty())
      got += fmt::format(": at the device's peak it would take {}", least);
    else if (all_refused)
      got = refusal_;
    throw UserError({.place = "ask devices",
                     .got = got,
                     .expected = "a later deadline, fewer tokens, or more devices",
                     .hint = "--most says how many are tried; a larger batch.sequences can be shared by more"});
  }

  const DeadlineQuestion& q_;
  const std::vector<int64_t> counts_;
  std::map<size_t, TriedCount> tried_;  // by index of counts_
  std::map<size_t, std::optional<PlannedRun>> plans_;
  std::string refusal_;
};

}  // namespace

std::vector<int64_t> device_counts(int64_t devices_per_node, int64_t most) {
  std::vector<int64_t> counts;
  for (int64_t n = 1; n < devices_per_node && n <= most; ++n)
    if (devices_per_node % n == 0) counts.push_back(n);
  for (int64_t n = devices_per_node; n <= most; n += devices_per_node) counts.push_back(n);
  return counts;
}

FewestDevices fewest_devices(const DeadlineQuestion& question) {
  return DeadlineSearch(question).run();
}

std::string fewest_text(const FewestDevices& answer) {
  const PlannedRun& plan = answer.plan;
  std::string text =
      fmt::format("{} of {} ({}) can train {} on {} tokens in {:g} days\n\n{}",
                  plan.devices == 1 ? std::string("1 device") : fmt::format("{} devices", plan.devices), plan.device,
                  plan.machine, plan.model, human_quantity(answer.tokens), answer.days, text_of(plan));
  std::optional<double> worst = plan.days_at_worst();
  if (worst && *worst > answer.days)
    text += fmt::format("deadline    is missed if steps take as long as the interval allows: {} days\n",
                        with_digits(*worst, 2));
  text += fmt::format("\ntried, from {} on (fewer cannot at the device's peak)\n", answer.least);
  for (const TriedCount& tried : answer.tried)
    text += fmt::format("  {:>7} devices  {}{}\n", tried.devices, word_of(tried.outcome),
                        tried.days ? fmt::format(", {} days", with_digits(*tried.days, 3)) : std::string());
  return text;
}

nlohmann::ordered_json fewest_json(const FewestDevices& answer) {
  using Json = nlohmann::ordered_json;
  auto tried_json = [](const TriedCount& tried) {
    return Json{{"devices", tried.devices},
                {"outcome", word_of(tried.outcome)},
                {"days", tried.days ? Json(*tried.days) : Json(nullptr)}};
  };
  Json json{
      {"tokens", answer.tokens},        {"deadline_days", answer.days},
      {"answer", json_of(answer.plan)}, {"next_less", answer.next_less ? tried_json(*answer.next_less) : Json(nullptr)},
      {"least_at_peak", answer.least},  {"tried", Json::array()}};
  for (const TriedCount& tried : answer.tried) json["tried"].push_back(tried_json(tried));
  return json;
}

}  // namespace sextant
