#include "app/plan_options.h"

#include <algorithm>
#include <array>

namespace sextant {

namespace {

constexpr std::array<VerbMode, 10> kModes{{
    {"plan", "the plan of a config"},
    {"search", "the search for layouts (--search)"},
    {"serve", "the plan of serving (--serve)"},
    {"laws", "scaling laws (--compute, --tokens, --params or --fit, without a config)"},
    {"validate", "the validation (--validate)"},
    {"judge_search", "the validation of the search (--validate with --search)"},
    {"calibrate", "the calibration (--validate with --calibrate)"},
    {"hold_out", "the validation by sources held out (--validate with --hold-out)"},
    {"published", "the runs that everybody knows (--published)"},
    {"search_published", "the search beside the runs that everybody knows (--published with --search)"},
}};

template <class... Modes>
constexpr ModeSet in(Modes... modes) {
  return (0u | ... | (1u << static_cast<unsigned>(modes)));
}

using enum PlanMode;
constexpr ModeSet kOfConfig = in(plan, search, serve);
constexpr ModeSet kOfRuns = in(validate, judge_search, calibrate, hold_out);

constexpr std::array<OptionUse, 33> kOptions{{
    {"config", kOfConfig},
    {"overrides", kOfConfig},
    {"--json", kOfConfig | in(laws, validate, judge_search, published, search_published)},
    {"--machine", kOfConfig | in(calibrate, hold_out)},
    {"--software", kOfConfig},
    {"--html", in(plan, search, validate)},
    {"--vary", in(plan)},
    {"--layouts", in(plan)},
    {"--trace", in(plan)},
    {"--timeline", in(plan)},
    {"--memory-timeline", in(plan)},
    {"--mesh", in(plan)},
    {"--straggler", in(plan)},
    {"--jitter", in(plan)},
    {"--imbalance", in(plan, search)},
    {"--search", in(search, judge_search, search_published)},
    {"--only", in(search, search_published)},  // where a search is judged, each profile says what was searched
    {"--devices", in(search)},
    {"--headroom", in(search)},
    {"--write", in(search, hold_out)},
    {"--serve", in(serve)},
    {"--prompt", in(serve)},
    {"--context", in(serve)},
    {"--validate", kOfRuns},
    {"--calibrate", in(calibrate)},
    {"--hold-out", in(hold_out)},
    {"--memory", in(hold_out)},
    {"--published", in(published, search_published)},
    {"--tokens", in(plan, search, laws)},
    {"--compute", in(laws)},
    {"--params", in(laws)},
    {"--inference-tokens", in(laws)},
    {"--fit", in(laws)},
}};

constexpr std::array<std::string_view, 10> kNeedMachine{"--software", "--layouts",   "--imbalance", "--trace",
                                                        "--timeline", "--straggler", "--jitter",    "--search",
                                                        "--serve",    "--tokens"};

}  // namespace

const OptionTable& plan_options() {
  static const OptionTable table{kModes, kOptions};
  return table;
}

PlanMode plan_mode(const std::vector<std::string>& given) {
  auto has = [&](std::string_view option) { return std::ranges::count(given, option) > 0; };
  if (has("--validate") || has("--calibrate") || has("--hold-out"))
    return has("--hold-out") ? hold_out : has("--calibrate") ? calibrate : has("--search") ? judge_search : validate;
  if (has("--published")) return has("--search") ? search_published : published;
  if (has("--search")) return search;
  if (has("--serve")) return serve;
  bool asks_laws = has("--compute") || has("--tokens") || has("--params") || has("--fit");
  return asks_laws && !has("config") ? laws : plan;
}

bool needs_machine(const std::string& option) {
  return std::ranges::count(kNeedMachine, option) > 0;
}

}  // namespace sextant
