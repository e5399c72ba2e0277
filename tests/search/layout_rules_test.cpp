// One set of rules says which layouts are possible: what a search lists is what a config may have, over layouts drawn
// at random.
#include "config/layout_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/rng.h"
#include "checkout.h"
#include "config/load.h"
#include "cost/planned_target.h"
#include "plan/predict.h"
#include "run/resolve_spec.h"
#include "search/layout_limits.h"
#include "search/search_space.h"

namespace sextant {
namespace {

using Settings = std::vector<std::string>;

class Draw {
 public:
  explicit Draw(uint64_t stream) : random_(11, "layouts", stream) {}
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[random_.below(next_++, choices.size())];
  }
  int64_t divisor_of(int64_t n) {
    std::vector<int64_t> found;
    for (int64_t d = 1; d <= n; ++d)
      if (n % d == 0) found.push_back(d);
    return found[random_.below(next_++, found.size())];
  }

 private:
  Random random_;
  uint64_t next_ = 0;
};

Machine one_node_of_many() {
  Machine machine;
  machine.devices_per_node = 64;
  return machine;
}

// A model and a batch, on one rank.
struct DrawnRun {
  std::filesystem::path config;
  Settings settings;
  int64_t devices;
};

DrawnRun draw_run(Draw& draw) {
  const bool experts = draw.of({false, true});
  DrawnRun run{
      .config = std::filesystem::path(checkout::kSources) / "configs" / (experts ? "tiny-moe.toml" : "tiny-llama.toml"),
      .settings = {"model.hidden=96", "batch.microbatch=1", "model.max_seq=9000"},
      .devices = draw.of({2, 4, 6, 8, 12})};
  auto set = [&](const char* key, const auto& value) { run.settings.push_back(fmt::format("{}={}", key, value)); };
  set("model.layers", draw.of({2, 4, 6}));
  const auto heads = draw.of<std::pair<int, int>>({{4, 2}, {4, 4}, {6, 3}, {6, 2}, {8, 1}, {12, 4}});
  set("model.heads", heads.first);
  set("model.kv_heads", heads.second);
  set("model.ffn", draw.of({96, 120, 160}));
  if (experts) set("model.experts.count", draw.of({4, 6, 8}));
  set("batch.seq", draw.of({16, 24, 30, 32, 36, 44, 48, 8196}));
  set("batch.sequences", draw.of({4, 6, 8, 12, 24}));
  const auto context = draw.of<std::string>({"ring", "ulysses"});
  set("mesh.context", context);
  if (context == "ring") set("mesh.ring_order", draw.of<std::string>({"auto", "zigzag", "striped"}));
  return run;
}

// Of the layouts that a search may try; whether they are possible is not looked at.
LayoutChoice draw_choice(Draw& draw, const DrawnRun& drawn, const ModelSpec& spec) {
  MeshSection mesh;
  mesh.tp = draw.divisor_of(drawn.devices);
  mesh.cp = draw.of<int64_t>({1, 2, 4});
  if (drawn.devices / mesh.tp % mesh.cp != 0) mesh.cp = 1;
  do mesh.pp = draw.divisor_of(drawn.devices / mesh.tp / mesh.cp);
  while (mesh.pp > spec.layers);
  mesh.dp = drawn.devices / mesh.tp / mesh.cp / mesh.pp;
  if (spec.experts) {
    mesh.ep = draw.divisor_of(spec.experts->count);
    if (mesh.tp > 1) mesh.etp = draw.of<int64_t>({0, 1});
  }
  if (mesh.tp > 1) mesh.sequence_parallel = draw.of({false, true});
  if (mesh.dp * mesh.cp > 1) mesh.zero = draw.of<int64_t>({0, 1, 2, 3});
  LayoutChoice choice{.mesh = mesh, .microbatch = draw.of<int64_t>({1, 2, 4})};
  if (mesh.pp > 1) choice.schedule = draw.of({ScheduleKind::one_f_one_b, ScheduleKind::zb_h1});
  choice.recompute =
      draw.of({RecomputeMode::none, RecomputeMode::norms, RecomputeMode::selective, RecomputeMode::full});
  return choice;
}

std::optional<RunConfig> loaded(const DrawnRun& drawn, const std::string& overrides) {
  Settings settings = drawn.settings;
  std::istringstream words(overrides);
  for (std::string word; words >> word;) settings.push_back(word);
  try {
    return load_config(drawn.config, settings);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

TEST(LayoutRules, ASearchListsWhatAConfigMayHave) {
  constexpr uint64_t kRuns = 100, kLayouts = 100;
  constexpr int kLowered = 60;
  const Machine machine = one_node_of_many();
  const Target target = planned_target(own_profile());
  int possible = 0, impossible = 0, lowered = 0;
  for (uint64_t i = 0; i < kRuns; ++i) {
    Draw draw(i);
    const DrawnRun drawn = draw_run(draw);
    const std::optional<RunConfig> run = loaded(drawn, "");
    ASSERT_TRUE(run) << fmt::format("{}", fmt::join(drawn.settings, " "));
    const ModelSpec spec = resolve_spec(*run);
    const std::vector<LayoutChoice> listed = layouts_of({*run, spec, machine, drawn.devices, Breadth::wide});
    for (uint64_t j = 0; j < kLayouts; ++j) {
      const LayoutChoice choice = draw_choice(draw, drawn, spec);
      const std::string overrides = overrides_text(choice);
      const std::optional<RunConfig> config = loaded(drawn, overrides);
      ++(config ? possible : impossible);
      EXPECT_EQ(std::ranges::count(listed, choice) > 0, config.has_value())
          << fmt::format("{} {}", fmt::join(drawn.settings, " "), overrides);
      if (!config || lowered == kLowered || j % 8 != 0) continue;
      ++lowered;
      EXPECT_NO_THROW(lower_run(*config, spec, target, Checks::none)) << overrides;
    }
  }
  EXPECT_GT(possible, 1000);
  EXPECT_GT(impossible, 1000);
  EXPECT_EQ(lowered, kLowered);
}

// Ulysses gives each rank whole positions in cp pieces, not in the 2·cp of a zigzag.
TEST(LayoutRules, UlyssesNeedsNoTwoPiecesARank) {
  const RunConfig run = load_config(std::filesystem::path(checkout::kSources) / "configs" / "tiny-llama.toml",
                                    Settings{"model.max_seq=9000", "mesh.context=ulysses", "batch.seq=8196"});
  const LayoutLimits limits({"cp=4"}, "--only");
  EXPECT_FALSE(layouts_of({run, resolve_spec(run), one_node_of_many(), 4, Breadth::wide, &limits}).empty());
}

}  // namespace
}  // namespace sextant
